"""Which tasks of an array a line of the queue stands for."""

from __future__ import annotations

import pytest

from runyard.schedulers.jobs import Tasks
from runyard.schedulers.states import UNKNOWN


@pytest.mark.parametrize(
    ("which", "task", "holds"),
    [
        ("123_4", "4", True),
        ("123_4", "5", False),
        ("123", "4", False),
        ("123_[5-80%8]", "80", True),
        ("123_[5-80%8]", "81", False),
        ("123_[5-80%8]", "8", True),
        ("123_[1,3,5-9:2]", "7", True),
        ("123_[1,3,5-9:2]", "8", False),
    ],
)
def test_a_task_is_found_in_a_range(which: str, task: str, *, holds: bool) -> None:
    assert Tasks(which, 1, UNKNOWN, None, None, None, None).holds(task) is holds
