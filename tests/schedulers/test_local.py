"""This machine as a scheduler."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runyard.schedulers.conformance import Bench, SchedulerConformance, bench_environ
from runyard.schedulers.local.scheduler import Local


def write_script(body: str, log: Path, tasks: int | None) -> str:
    array = "" if tasks is None else f"#RUNYARD array={tasks}\n"
    output = f"{log}" if tasks is None else f"{log}.{{task}}"
    return f"#!/bin/sh\n{array}#RUNYARD output={output}\n{body}\n"


class TestLocal(SchedulerConformance):
    @pytest.fixture
    def bench(self, tmp_path: Path) -> Bench:
        return Bench(Local(bench_environ(os.environ), tmp_path / "jobs"), write_script, tmp_path)


def test_a_job_whose_supervisor_was_killed_has_failed(tmp_path: Path) -> None:
    bench = Bench(Local(dict(os.environ), tmp_path / "jobs"), write_script, tmp_path)
    job_id = bench.send(bench.batch("kill -9 $PPID; sleep 1"))
    assert bench.ends(job_id).states == {"FAILED": 1}
