"""Ctrl-C at a terminal asks back: leave it running, drain, stop, or carry on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.home import Home
from tests.live.sweeping import (
    agents_of,
    api_of,
    kill,
    processes_of,
    programs_of,
    with_python,
    write_sweep,
)
from tests.live.test_sweep_command import LONG, _python, sweep_counts
from tests.node.terminals import Terminal, until

pytestmark = pytest.mark.live

# Ends when it is let.
PROGRAM = """\
import os, time
while not os.path.exists("go"):
    time.sleep(0.02)
"""


@pytest.fixture
def asked(state_folder: Home, tmp_path: Path) -> Iterator[Terminal]:
    """A sweep of three at work at a terminal, two at a time, that has just been asked to end."""
    file = write_sweep(tmp_path / "p", PROGRAM, parameters={"n": {"values": [1, 2, 3]}})
    words = f'exec "$0" -m runyard sweep {file} -j 2'
    with Terminal(["sh", "-c", words, _python()], columns=80, env=with_python()) as terminal:
        until(lambda: len(programs_of(state_folder)) == 2, "two programs", LONG)
        terminal.type("\x03")
        terminal.expect("what now", LONG)
        yield terminal
    if left := [*agents_of(state_folder), *programs_of(state_folder)]:
        kill(*left)


def test_left_running_it_goes_on_in_the_background(
    asked: Terminal, state_folder: Home, tmp_path: Path
) -> None:
    asked.type("l")
    asked.expect("goes on in the background", LONG)
    assert asked.wait() == 0
    asked.hang_up()
    assert len(programs_of(state_folder)) == 2
    (tmp_path / "p" / "go").touch()
    until(lambda: sweep_counts(state_folder)["finished"] == 3, "all three", LONG)
    until(lambda: not processes_of(state_folder, "train|node"), "its agent's end")


def test_drained_what_runs_finishes_and_nothing_begins(
    asked: Terminal, state_folder: Home, tmp_path: Path
) -> None:
    asked.type("d")
    asked.expect("nothing new begins, and what runs may finish", LONG)
    (tmp_path / "p" / "go").touch()
    asked.expect("to go on:  runyard sweep", LONG)
    assert asked.wait() == 0
    counts = sweep_counts(state_folder)
    assert (counts["finished"], counts["running"], counts["waiting"]) == (2, 0, 0)
    assert api_of(state_folder).sweeps.sweeps(limit=1)[0]["state"] == "running"


def test_carried_on_nothing_has_changed_and_the_next_ctrl_c_asks_again(
    asked: Terminal, state_folder: Home, tmp_path: Path
) -> None:
    asked.type("c")
    asked.expect("2 running", LONG)
    asked.type("\x03")
    asked.expect("what now", LONG)
    asked.type("c")
    (tmp_path / "p" / "go").touch()
    assert asked.wait(LONG) == 0
    assert sweep_counts(state_folder)["finished"] == 3


def test_a_second_ctrl_c_is_an_answer_too(asked: Terminal, state_folder: Home) -> None:
    asked.type("\x03")
    asked.expect("asking what runs to end", LONG)
    assert asked.wait(LONG) == 130
    assert sweep_counts(state_folder)["waiting"] == 2
