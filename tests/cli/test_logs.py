"""`logs` of runs that print much, and of runs that go on."""

from __future__ import annotations

import os
import sys

import pytest

from tests.conftest import run_runyard
from tests.node.terminals import PATIENCE, started, until

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("state_folder")]


def test_logs_of_a_long_console_come_in_order() -> None:
    script = "for i in range(300_000): print('line', i)"
    done = run_runyard("run", "-q", "-e", "long", sys.executable, "-c", script)
    assert run_runyard("logs", "long").stdout == done.stdout
    assert run_runyard("logs", "long", "-l", "2").stdout == "line 299998\nline 299999\n"


def test_logs_follow_a_run_to_its_end() -> None:
    with started("run", "-e", "followed", "--", "sh", "-c", "echo one; read x; echo two",
                 pipe_input=True) as process:  # fmt: skip
        until(lambda: run_runyard("logs", "followed").stdout == "one\n", "the first line")
        with started("logs", "-f", "followed") as follower:
            assert follower.stdout is not None
            assert follower.stdout.readline() == b"one\n"
            process.communicate(b"\n", timeout=PATIENCE)
            assert follower.stdout.readline() == b"two\n"
            assert follower.wait(PATIENCE) == 0


def test_logs_follow_through_a_restart_of_the_server() -> None:
    with started("run", "-e", "restarted", "--", "sh", "-c", "echo one; read x; echo two",
                 pipe_input=True) as process:  # fmt: skip
        until(lambda: run_runyard("logs", "restarted").stdout == "one\n", "the first line")
        with started("logs", "-f", "restarted") as follower:
            assert follower.stdout is not None
            assert follower.stdout.readline() == b"one\n"
            assert run_runyard("server", "restart").returncode == 0
            process.communicate(b"\n", timeout=PATIENCE)
            out, _ = follower.communicate(timeout=PATIENCE)
            assert (out, follower.returncode) == (b"two\n", 0)


def test_an_interrupt_ends_a_command_without_a_word() -> None:
    with started("run", "-e", "waiting", "--", "sleep", "600") as process:
        until(lambda: "waiting" in run_runyard("runs").stdout, "the run")
        with started("logs", "-f", "waiting") as follower:
            until(lambda: _waits_for_answer(follower.pid), "the request")
            follower.send_signal(2)
            assert follower.communicate(timeout=PATIENCE) == (b"", b"")
            assert follower.returncode == -2
        assert process.poll() is None


def _waits_for_answer(pid: int) -> bool:
    """Whether the process has a connection open: it is past its start."""
    try:
        return any("socket:" in os.readlink(f"/proc/{pid}/fd/{one}")  # noqa: PTH115
                   for one in os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208  # fmt: skip
    except OSError:
        return False
