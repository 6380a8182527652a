"""`runyard compare` on runs and on lists of seeds that were really run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from runyard.home import Home
from tests.conftest import run_runyard

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("yard")]

PROGRAM = """
import argparse, wandb
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
parser.add_argument("--lr", type=float)
args = parser.parse_args()
run = wandb.init(config=vars(args))
for step in range(5):
    run.log({"loss": args.lr + args.seed / 1000 + 1 / (step + 1)})
run.finish()
"""


@pytest.fixture(scope="module")
def yard(module_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "train.py").write_text(PROGRAM)
    for name, lr in (("slow", "0.5"), ("fast", "0.1")):
        done = run_runyard(
            "repeat", "--seeds", "3", "-j", "3", "-e", name, "-q", "--",
            sys.executable, "train.py", "--lr", lr, "--seed", "{seed}",
            cwd=folder,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    return folder


def _json(*words: str) -> Any:
    done = run_runyard("compare", *words, "--json")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)


def test_two_lists_of_seeds_are_compared_seed_by_seed() -> None:
    found = _json("slow", "fast", "--metric", "loss")
    slow, fast = found["sides"]
    assert [len(side["runs"]) for side in (slow, fast)] == [3, 3]
    assert slow["less_the_first"] is None
    difference = fast["less_the_first"]["loss"]
    assert difference["mean"] == pytest.approx(-0.4)
    assert (difference["paired"], difference["pairs"], difference["is_told"]) == (True, 3, True)
    assert found["differing"] == ["lr"]


def test_a_report_of_one_has_the_mean_over_its_seeds() -> None:
    """Its file names no metric: every number that its runs have in common is told."""
    done = run_runyard("report", "slow", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    [setting] = told["sweeps"][0]["over_seeds"]
    assert setting["runs"] == 3
    assert setting["metrics"]["loss"]["mean"] == pytest.approx(0.5 + 0.001 + 0.2)
    assert setting["metrics"]["loss"]["deviation"] == pytest.approx(0.001)
    # It ran on this machine: nothing was asked for, and so nothing is wasted.
    [outside] = told["jobs"]
    assert (outside["jobs"], outside["cpu_held"]) == ([], None)
    assert outside["cpu_used"] > 0
    assert {"--cpus", "--memory", "--time"} == {one["option"] for one in outside["changes"]}


def test_the_terminal_says_it_in_words() -> None:
    done = run_runyard("compare", "slow", "fast", "--metric", "loss", "--goal", "minimize")
    assert "lr" in done.stdout
    assert "0.4 better" in done.stdout.replace(",", "")
    assert "seed by seed, 3 pairs" in done.stdout


def test_two_runs_are_shown_without_a_verdict() -> None:
    slow, fast = (side["runs"][0] for side in _json("slow", "fast")["sides"])
    done = run_runyard("compare", slow, fast)
    assert "one run a side" in done.stdout
    assert done.returncode == 0


def test_runs_named_by_hand_are_one_side() -> None:
    slow, fast = (",".join(side["runs"]) for side in _json("slow", "fast")["sides"])
    assert [len(side["runs"]) for side in _json(slow, fast)["sides"]] == [3, 3]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("slow",), "cannot be compared"),
        (("slow", "nowhere"), "`runyard runs` and `runyard runs --sweeps`"),
        (("slow", "fast", "--metric", "lost"), "in common: loss"),
        (("slow", ","), "is empty"),
    ],
)
def test_what_cannot_be_compared(words: tuple[str, ...], said: str) -> None:
    done = run_runyard("compare", *words)
    assert done.returncode != 0
    assert said in done.stderr
