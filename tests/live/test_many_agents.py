"""Many agents at one server. `benchmarks/many_agents.py` is the same with five hundred."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from benchmarks.many_agents import measure

from runyard.home import Home

pytestmark = pytest.mark.live


def test_of_many_agents_trials_none_is_lost_and_none_runs_twice(
    state_folder: Home, tmp_path: Path
) -> None:
    is_whole = bool(os.environ.get("RUNYARD_ALL_AGENTS"))
    agents, trials, seconds = (500, 5000, 1.0) if is_whole else (50, 300, 0.1)
    found = measure(tmp_path, agents, trials, seconds)
    assert found.states == {"finished": trials}
    assert found.attempts == trials
    assert set(found.begun.values()) == {1}
    assert len(found.begun) == trials
