"""Jobs that Slurm ends: at their time limit, for a more urgent job, by scancel."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cuts.cells import framework_cells, job_cells
from tests.cuts.trials import AT_ONCE, CUTS, IS_WHOLE, Cell, Trials
from tests.slurm.cluster import FINAL_STATES, SlurmCluster
from tests.slurm.config import ClusterSpec
from tests.slurm.plugin import require_slurm
from tests.slurm.yard import Yard, open_yard

pytestmark = [pytest.mark.slurm, pytest.mark.clients]

# Slurm's TERM reaches the job's script and agent alone, and KILL comes as late as on most clusters.
SPEC = ClusterSpec(
    nodes=1, cpus=max(16, 2 * AT_ONCE), gpus=0, accounting=False, proctrack="pgid", kill_wait=30
)
whole = pytest.mark.skipif(not IS_WHOLE, reason="RUNYARD_ALL_CUTS=1: a minute and more a cut")


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    require_slurm(accounting=False)
    with SlurmCluster(SPEC) as cluster:
        yield cluster


class Jobs:
    """Trials of a sweep, each in a job of its own."""

    def __init__(self, yard: Yard, cells: Sequence[Cell], *options: str) -> None:
        self.yard = yard
        self.trials = Trials(yard.project, yard.api, cells)
        variables = [
            word
            for name, value in self.trials.environment.items()
            for word in ("--variable", f"{name}={value}")
        ]
        self._options = (*variables, "--cpus", "1", "--on", "slurm", *options)
        said = yard.submit(
            "sweep", "sweep.yaml", "--no-check", "--yes", "--agents", str(len(cells)),
            *self._options,
        )  # fmt: skip
        self.sweep: str = said["sweep"]
        self.job = job_of(said)

    def add(self) -> None:
        agents = str(len(self.trials.cells))
        said = self.yard.submit("agents", "add", self.sweep, "--agents", agents, *self._options)
        self.job = job_of(said)

    def wait_for_end(self) -> None:
        self.yard.cluster.wait_for(self.job, FINAL_STATES)

    def faults(self) -> dict[str, str]:
        self.yard.ended(self.sweep, 300)
        return self.trials.faults()


def job_of(said: dict[str, Any]) -> str:
    (job,) = said["jobs"]
    return str(job["job_id"])


def by_scancel(yard: Yard, cells: Sequence[Cell]) -> dict[str, str]:
    jobs, chance = Jobs(yard, cells, "--time", "30m"), random.Random(7)
    for cut in range(CUTS):
        jobs.trials.wait_for_work(chance)
        yard.cluster.run("scancel", jobs.job)
        jobs.wait_for_end()
        if cut == CUTS - 1:
            jobs.trials.may_end()
        jobs.add()
    return jobs.faults()


def by_preemption(yard: Yard, cells: Sequence[Cell]) -> dict[str, str]:
    """The jobs go back to the queue, and run again when the urgent one is through."""
    jobs, chance = Jobs(yard, cells, "--time", "30m"), random.Random(7)
    for _ in range(CUTS):
        jobs.trials.wait_for_work(chance)
        urgent = yard.cluster.submit("true", "--partition=high", "--exclusive")
        yard.cluster.wait_for(urgent, "COMPLETED")
    jobs.trials.may_end()
    return jobs.faults()


def by_time_limit(yard: Yard, cells: Sequence[Cell]) -> dict[str, str]:
    # The links are everybody's: programs that leave early take more than their share.
    jobs = Jobs(yard, cells, "--time", "1m", "--chain", str(2 * CUTS))
    chance = random.Random(7)
    for cut in range(1, CUTS + 1):
        jobs.trials.wait_for_work(chance)
        jobs.trials.wait_for_attempt(cut + 1)
    jobs.trials.may_end()
    return jobs.faults()


WAYS: dict[str, Callable[[Yard, Sequence[Cell]], dict[str, str]]] = {
    "scancel": by_scancel,
    "preemption": by_preemption,
    "time-limit": by_time_limit,
}


@pytest.mark.parametrize(
    "way",
    ["scancel", pytest.param("preemption", marks=whole), pytest.param("time-limit", marks=whole)],
)
def test_no_row_is_lost_and_none_is_there_twice(
    way: str, cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_all(way, job_cells(), cluster, tmp_path, monkeypatch)


@whole
@pytest.mark.frameworks
@pytest.mark.parametrize("way", sorted(WAYS))
def test_trainers_of_others(
    way: str, cluster: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_all(way, framework_cells(), cluster, tmp_path, monkeypatch)


def cut_all(
    way: str,
    cells: Sequence[Cell],
    cluster: SlurmCluster,
    folder: Path,
    environment: pytest.MonkeyPatch,
) -> None:
    faults: dict[str, str] = {}
    for first in range(0, len(cells), AT_ONCE):
        some = cells[first:][:AT_ONCE]
        with open_yard(folder / f"y{first}", environment, cluster) as yard:
            faults |= WAYS[way](yard, some)
        print(f"{way}: {', '.join(cell.name for cell in some)}: {CUTS} cuts, {faults}", flush=True)
    assert not faults
