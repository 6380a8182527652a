"""A controller that is busy, or takes a job and does not say so.

A real one cannot be made to lose an answer on purpose: here `sbatch` and `squeue` are small
stand-ins that say what Slurm says then.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from runyard.clusters.load import load_profile
from runyard.config.request import Agents
from runyard.launch.plan import Plan
from runyard.launch.submitting import submit
from runyard.schedulers.errors import SchedulerError, SchedulerMissing
from runyard.schedulers.slurm.commands import ask, find_slurm
from runyard.schedulers.slurm.limits import is_limit
from runyard.schedulers.slurm.scheduler import Slurm
from tests.launch.planning import PLACES, planned, request

BUSY = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"
StandIn = Callable[[str, str], dict[str, str]]


@pytest.fixture
def stand_in(tmp_path: Path) -> StandIn:
    """Put a program of this name and text first on the path; the environment to use it in."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def make(name: str, text: str) -> dict[str, str]:
        file = folder / name
        file.write_text(f"#!/bin/sh\ncd '{folder}'\n{text}\n")
        file.chmod(0o755)
        return {**os.environ, "PATH": f"{folder}:/usr/bin:/bin"}

    return make


def one_job(tmp_path: Path, agents: int = 1) -> Plan:
    places = replace(PLACES, home=tmp_path, job=tmp_path / "job", scratch=None)
    return planned(trials=agents, places=places, agents=Agents(count=agents))


def times(name: str) -> str:
    return f"echo x >>{name}.asked; n=$(wc -l <{name}.asked)"


def test_a_busy_controller_is_asked_again_with_longer_and_longer_pauses(
    stand_in: StandIn, tmp_path: Path
) -> None:
    stand_in("squeue", "true")
    environ = stand_in(
        "sbatch",
        f"{times('sbatch')}; [ $n -gt 3 ] || {{ echo '{BUSY}' >&2; exit 1; }}; echo 42",
    )
    pauses: list[float] = []
    told: list[str] = []
    done = submit(
        one_job(tmp_path), scheduler=Slurm(environ), notice=told.append, sleep=pauses.append
    )
    assert [job.job_id for job in done.jobs] == ["42"]
    assert pauses == [0.5, 1.0, 2.0]
    assert "Socket timed out" in told[0]


def test_a_job_that_was_taken_without_a_word_is_not_sent_twice(
    stand_in: StandIn, tmp_path: Path
) -> None:
    environ = stand_in(
        "sbatch", f"cat >script; echo \"$*\" >words; {times('sbatch')}; echo '{BUSY}' >&2; exit 1"
    )
    stand_in("squeue", "echo '7|runyard:another|x'; echo \"43|$(cat words)|x\"")
    done = submit(one_job(tmp_path), scheduler=Slurm(environ), sleep=lambda _seconds: None)
    assert [job.job_id for job in done.jobs] == ["43"]
    assert (tmp_path / "bin" / "sbatch.asked").read_text().count("x") == 1


def test_a_controller_that_stays_away_is_an_error_with_its_words(stand_in: StandIn) -> None:
    environ = stand_in(
        "sinfo", "echo 'slurm_load_partitions: Unable to contact slurm controller' >&2; exit 1"
    )
    answer = ask(["sinfo"], environ=environ, patience=1.0, sleep=lambda _seconds: None)
    assert answer.is_busy
    assert "Unable to contact slurm controller" in answer.words


def test_what_is_refused_for_good_is_not_asked_again(stand_in: StandIn, tmp_path: Path) -> None:
    said = "sbatch: error: Batch job submission failed: Invalid account specified"
    environ = stand_in("sbatch", f"{times('sbatch')}; echo '{said}' >&2; exit 1")
    with pytest.raises(SchedulerError) as refused:
        submit(one_job(tmp_path), scheduler=Slurm(environ))
    assert "Invalid account" in str(refused.value.said)
    assert "sacctmgr" in str(refused.value.mend)
    assert (tmp_path / "bin" / "sbatch.asked").read_text().count("x") == 1


def test_where_a_limit_lets_some_in_the_rest_is_held(stand_in: StandIn, tmp_path: Path) -> None:
    # Nine of twenty fit.
    environ = stand_in(
        "sbatch",
        "n=$(sed -n 's/^#SBATCH --array=1-\\([0-9]*\\).*/\\1/p'); used=$(cat used 2>/dev/null || "
        "echo 0); [ $((used + n)) -le 9 ] || { echo 'sbatch: error: QOSMaxSubmitJobPerUserLimit' "
        ">&2; exit 1; }; echo $((used + n)) >used; echo $((100 + n))",
    )
    done = submit(one_job(tmp_path, agents=20), scheduler=Slurm(environ))
    assert sum(job.tasks for job in done.jobs) == 8  # Halves of twenty: 5, 2 and 1.
    assert [(part.count, part.offset) for part in done.left] == [(12, 8)]
    assert [job.offset for job in done.jobs] == [0, 5, 7]
    assert done.why_left == "QOSMaxSubmitJobPerUserLimit"


# Of "sbatch: error: NAME", from `job_state_reason` in Slurm's sources, 22.05 to 25.05.
@pytest.mark.parametrize(
    "name",
    [
        "AssocMaxSubmitJobLimit",
        "AssocGrpSubmitJobsLimit",
        "QOSGrpSubmitJobsLimit",
        "QOSMaxSubmitJobPerUserLimit",
        "MaxSubmitJobsPerAccount",
    ],
)
def test_every_limit_on_the_number_of_jobs_means_later(name: str) -> None:
    general = (
        "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job "
        "submit limit, user's size and/or time limits)"
    )
    assert is_limit(f"sbatch: error: {name}\n{general}")
    assert is_limit(general)
    for size in ("QOSMaxWallDurationPerJobLimit", "AssocGrpCpuLimit", "QOSMaxGRESPerJob"):
        assert not is_limit(f"sbatch: error: {size}\n{general}")


def test_the_folders_are_there_before_slurm_is_asked(stand_in: StandIn, tmp_path: Path) -> None:
    made = one_job(tmp_path)
    environ = stand_in(
        "sbatch", f"[ -d '{made.logs}' ] && [ -s '{tmp_path}/job/job.json' ] && echo 5"
    )
    assert submit(made, scheduler=Slurm(environ)).jobs[0].job_id == "5"
    assert (tmp_path / "job" / "job.json").stat().st_mode & 0o077 == 0


def test_jobs_one_by_one_are_spaced_where_the_site_wants_it(
    stand_in: StandIn, tmp_path: Path
) -> None:
    environ = stand_in("sbatch", f"{times('sbatch')}; echo $n")
    places = replace(PLACES, home=tmp_path, job=tmp_path / "job", scratch=None)
    profile = load_profile("generic")
    spaced = replace(profile, limits=replace(profile.limits, pause=1.0))
    asked = request(spaced, agents=Agents(count=3, form="jobs"))
    pauses: list[float] = []
    done = submit(planned(asked, places=places), scheduler=Slurm(environ), sleep=pauses.append)
    assert [job.job_id for job in done.jobs] == ["1", "2", "3"]
    assert pauses == [1.0, 1.0]


def test_no_slurm_is_said_in_words() -> None:
    with pytest.raises(SchedulerMissing, match="there is no Slurm here"):
        find_slurm({"PATH": "/nowhere"})


def test_where_there_is_no_controller_the_advice_is_to_go_to_a_login_node(
    stand_in: StandIn, tmp_path: Path
) -> None:
    stand_in("squeue", "true")
    said = "resolve_ctls_from_dns_srv: res_nsearch error: Unknown host"
    environ = stand_in("sbatch", f"echo 'sbatch: error: {said}' >&2; exit 1")
    with pytest.raises(SchedulerError, match="no controller for this machine") as error:
        submit(one_job(tmp_path), scheduler=Slurm(environ))
    assert "on a login node" in str(error.value.mend)
