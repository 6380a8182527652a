"""Slurm ends a job by a TERM to all its processes: programs may die before their agent hears."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from runyard.home import Home
from tests.live.sweeping import (
    WITHOUT_WANDB,
    agents_of,
    programs_of,
    started_sweep,
    trials_of,
    write_sweep,
)
from tests.node.terminals import until

pytestmark = pytest.mark.live


@pytest.mark.parametrize(
    ("is_cancelled", "state", "cause"),
    [(True, "waiting", "preempted"), (False, "failed", "signal")],
    ids=["the whole job", "the program alone"],
)
def test_a_program_that_dies_of_term_in_a_job(
    state_folder: Home,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_cancelled: bool,
    state: str,
    cause: str,
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "4021")
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(int(time.time()) + 9000))
    config = {"parameters": {"seconds": {"value": 300}, "code": {"values": [0, 1]}}, "run_cap": 1}
    file = write_sweep(tmp_path / "project", WITHOUT_WANDB, **config)
    with started_sweep(state_folder, str(file), cwd=file.parent):
        until(lambda: len(programs_of(state_folder)) == 1, "the program")
        until(lambda: trials_of(state_folder)[0]["job"] == "4021", "the agent's word")
        [program] = programs_of(state_folder)
        agent = agents_of(state_folder)[0]
        # However slow this machine is: the agent finds both, and the program's end is the older.
        os.kill(agent, signal.SIGSTOP)
        os.kill(program, signal.SIGTERM)
        until(lambda: not programs_of(state_folder), "its end")
        if is_cancelled:
            os.kill(agent, signal.SIGTERM)
        os.kill(agent, signal.SIGCONT)
        until(lambda: trials_of(state_folder)[0]["state"] == state, f"a trial that is {state}")
        assert trials_of(state_folder)[0]["cause"] == cause
