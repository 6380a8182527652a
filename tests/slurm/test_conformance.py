"""Slurm as a scheduler: what every one must pass, on a real cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.schedulers.conformance import Bench, SchedulerConformance, bench_environ
from runyard.schedulers.slurm.scheduler import Slurm
from tests.slurm.cluster import SlurmCluster

pytestmark = pytest.mark.slurm


def write_script(body: str, log: Path, tasks: int | None) -> str:
    array = "" if tasks is None else f"#SBATCH --array=1-{tasks}\n"
    output = str(log) if tasks is None else f"{log}.%a"
    options = f"#SBATCH --output={output} --mem=10M --time=5 --chdir={log.parent}\n"
    return f"#!/bin/sh\n{array}{options}{body}\n"


class TestSlurm(SchedulerConformance):
    @pytest.fixture
    def bench(self, slurm_cluster: SlurmCluster, tmp_path: Path) -> Iterator[Bench]:
        yield Bench(Slurm(bench_environ(slurm_cluster.env)), write_script, tmp_path)
        slurm_cluster.cancel_jobs()
