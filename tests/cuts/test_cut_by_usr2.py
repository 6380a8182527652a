"""Agents that are told by USR2 alone that their job ends, in the middle of their programs' work."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from runyard.client.discover import ensure_server
from runyard.home import Home
from tests.cuts.cells import client_cells, framework_cells
from tests.cuts.trials import AT_ONCE, CUTS, IS_WHOLE, LONG, Cell, Trials

pytestmark = [pytest.mark.live, pytest.mark.clients]


def test_no_row_is_lost_and_none_is_there_twice(state_folder: Home, tmp_path: Path) -> None:
    cut_all(state_folder, tmp_path, client_cells())


@pytest.mark.frameworks
@pytest.mark.skipif(not IS_WHOLE, reason="RUNYARD_ALL_CUTS=1 cuts trainers of others too")
def test_trainers_of_others(state_folder: Home, tmp_path: Path) -> None:
    cut_all(state_folder, tmp_path, framework_cells())


def cut_all(home: Home, folder: Path, cells: Sequence[Cell]) -> None:
    faults: dict[str, str] = {}
    for first in range(0, len(cells), AT_ONCE):
        trials = Trials(folder / f"p{first}", ensure_server(home).api, cells[first:][:AT_ONCE])
        faults |= cut(trials)
        print(f"{', '.join(trials.cells)}: {CUTS} cuts, {faults}", flush=True)
    assert not faults


def cut(trials: Trials) -> dict[str, str]:
    sweep, chance = trials.make(), random.Random(7)
    for _ in range(CUTS):
        with agent(trials, str(sweep["key"])) as process:
            trials.wait_for_work(chance)
            assert process.poll() is None
            process.send_signal(signal.SIGUSR2)
            process.wait(LONG)
    trials.may_end()
    with agent(trials, str(sweep["key"])) as process:
        assert process.wait(LONG) == 0
    return trials.faults()


@contextlib.contextmanager
def agent(trials: Trials, sweep: str) -> Iterator[subprocess.Popen[bytes]]:
    """Its keeper ends its programs if it is killed."""
    process = subprocess.Popen(
        [
            sys.executable, "-m", "runyard.node.agent", "--sweep", sweep,
            "--slots", str(len(trials.cells)), "--time", "3600", "--grace", "1",
        ],
        cwd=trials.folder,
        env={**os.environ, **trials.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()
