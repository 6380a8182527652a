"""The table of what becomes of a run."""

from __future__ import annotations

import pytest

from runyard.server.runs import states


@pytest.mark.parametrize(
    ("exit_code", "preempting", "state", "shown", "cause"),
    [
        (0, False, "finished", 0, "finished"),
        (0, True, "finished", 0, "finished"),
        (1, False, "failed", 1, "exit code 1"),
        (75, False, "failed", 75, "exit code 75"),
        (1, True, "preempted", 1, "exit code 1"),
        (-2, False, "killed", 130, "SIGINT"),
        (-15, False, "killed", 143, "SIGTERM"),
        (-15, True, "preempted", 143, "SIGTERM"),
        (130, False, "killed", 130, "SIGINT"),  # Through a shell.
        (143, False, "killed", 143, "SIGTERM"),
        (-9, False, "crashed", 137, "SIGKILL"),
        (-11, False, "crashed", 139, "SIGSEGV"),
        (-100, False, "crashed", 228, "exit code -100"),
        (128, False, "failed", 128, "exit code 128"),
        (255, False, "failed", 255, "exit code 255"),
    ],
)
def test_after_exit(exit_code: int, preempting: bool, state: str, shown: int, cause: str) -> None:
    assert states.after_exit(exit_code, preempting=preempting) == state
    assert states.shell_code(exit_code) == shown
    assert states.cause_of(exit_code) == cause


@pytest.mark.parametrize(
    ("exit_code", "preempting", "state"),
    [
        (0, False, "finished"),
        (0, True, "finished"),
        (1, False, "failed"),
        (255, False, "failed"),
        (-15, False, "failed"),
        (1, True, "preempted"),
    ],
)
def test_after_completion(exit_code: int, preempting: bool, state: str) -> None:
    assert states.after_completion(exit_code, preempting=preempting) == state


def test_after_silence() -> None:
    assert states.after_silence(preempting=False) == "crashed"
    assert states.after_silence(preempting=True) == "preempted"


def test_every_word_is_known() -> None:
    said = {
        states.after_exit(code, preempting=flag)
        for code in range(-64, 256)
        for flag in (False, True)
    }
    assert said <= set(states.ALL)
