"""Grid Engine as a scheduler: what every one must pass, on a real cell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.schedulers.conformance import Bench, SchedulerConformance, bench_environ
from runyard.schedulers.gridengine.scheduler import GridEngine

from .cluster import GridEngineCell

pytestmark = pytest.mark.slurm


def write_script(body: str, log: Path, tasks: int | None) -> str:
    array = "" if tasks is None else f"#$ -t 1-{tasks}\n"
    output = str(log) if tasks is None else f"{log}.$TASK_ID"
    return f"#!/bin/sh\n{array}#$ -o {output} -j y -wd {log.parent} -l h_rt=300\n{body}\n"


class TestGridEngine(SchedulerConformance):
    @pytest.fixture
    def bench(self, gridengine_cell: GridEngineCell, tmp_path: Path) -> Iterator[Bench]:
        yield Bench(GridEngine(bench_environ(gridengine_cell.env)), write_script, tmp_path)
        gridengine_cell.cancel_jobs()
