"""Ranks that log one W&B run between them, to a real server."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runyard.home import Home
from tests.conftest import RunRunyard
from tests.live.programs import curves, list_runs, stock_client
from tests.train.ranks import run_ranks

pytestmark = pytest.mark.frameworks

PROGRAM = Path(__file__).parent / "programs" / "logged_ranks.py"


def test_rank_0_logs_the_mean_and_its_run_is_closed_before_the_group(
    runyard: RunRunyard, state_folder: Home, torch_python: Path
) -> None:
    ended = run_ranks(torch_python, PROGRAM, [], **stock_client(state_folder))
    assert [rank.returncode for rank in ended] == [0, 0], ended[0].stderr + ended[1].stderr
    (run,) = list_runs(runyard)  # One for both.
    assert (run["state"], run["config"]["seed"]) == ("finished", 5)
    losses = [[float(value) for value in re.findall(r"loss (\S+)", rank.stdout)] for rank in ended]
    assert losses[0] != losses[1]  # Other seeds.
    found = curves(state_folder, run["id"])
    means = [sum(pair) / 2 for pair in zip(*losses, strict=True)]
    assert found["loss"]["values"] == pytest.approx(means)
    assert found["rank"]["values"] == [0.5] * 3
    assert "rank 0 closed run group seed 5" in ended[0].stderr
    assert re.search(r"rank 1 closed group seed (?!5 )\d+", ended[1].stderr)
