"""Two real processes with gloo between them: they decide alike, and fail together."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runyard.home import Home
from runyard.shapes.sweeps import CreatedSweep
from runyard.train import folders
from tests.live.programs import stock_client
from tests.live.sweeping import api_of, write_sweep
from tests.train.frameworks import program_environment
from tests.train.ranks import Ended, run_ranks

pytestmark = pytest.mark.frameworks

PROGRAMS = Path(__file__).parent / "programs"


def results(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(Path(f"{folder}-rank{rank}").read_text()) for rank in range(2)]


def test_ranks_agree_and_an_interrupted_run_ends_like_an_uncut_one(
    tmp_path: Path, torch_python: Path
) -> None:
    uncut, cut = tmp_path / "uncut", tmp_path / "cut"
    # First to its end. Then, with another folder, one rank gets the signal, and both leave after
    # the same step.
    stopped = run_ranks(
        torch_python, PROGRAMS / "two_ranks.py", ["through", str(uncut), "stop", str(cut)]
    )
    assert [rank.returncode for rank in stopped] == [75, 75], stopped[0].stderr + stopped[1].stderr
    assert stopped[0].stdout.count("only rank 0 prints this") == 1
    assert stopped[1].stdout == ""
    first, second = results(uncut)
    assert first["seed"] == 5
    assert second["seed"] != 5
    assert first["draw"] != second["draw"]
    assert first["best"] == second["best"] < 1e9
    assert first["weights"] == second["weights"]
    step = folders.saved(cut)[-1].step
    assert 21 <= step < 40
    # Rank 1 looks at another folder, as on a node's own disk: there all steps are done.
    ended = run_ranks(
        torch_python,
        PROGRAMS / "two_ranks.py",
        ["through", str(cut)],
        FOLDER_OF_RANK_1=str(uncut),
    )
    assert [rank.returncode for rank in ended] == [0, 0], ended[0].stderr + ended[1].stderr
    assert [result["start"] for result in results(cut)] == [step, step]
    assert [result["weights"] for result in results(cut)] == [first["weights"]] * 2


def _has_failed(rank: Ended) -> bool:
    """With an exception of Python. torch 2.13 aborts now and then when it exits after one."""
    is_aborted = rank.returncode == -signal.SIGABRT and "terminate called" in rank.stderr
    return "Traceback" in rank.stderr and (rank.returncode == 1 or is_aborted)


def test_ranks_that_are_out_of_step_hear_of_it(tmp_path: Path, torch_python: Path) -> None:
    ended = run_ranks(
        torch_python,
        PROGRAMS / "two_ranks.py",
        ["out-of-step"],
        RUNYARD_CHECKPOINT_DIR=str(tmp_path / "c"),
    )
    assert all(map(_has_failed, ended))
    assert "the ranks are out of step: rank 0 is at 'score'" in ended[0].stderr


def test_when_rank_0_fails_all_fail_at_once(tmp_path: Path, torch_python: Path) -> None:
    ended = run_ranks(
        torch_python,
        PROGRAMS / "two_ranks.py",
        ["rank-0-fails"],
        RUNYARD_CHECKPOINT_DIR=str(tmp_path / "c"),
    )
    assert all(map(_has_failed, ended))
    assert "ZeroDivisionError" in ended[0].stderr
    assert "rank 0 failed" in ended[1].stderr
    assert "ZeroDivisionError: division by zero" in ended[1].stderr


@pytest.mark.live
def test_one_trial_of_a_sweep_for_all_ranks(
    state_folder: Home, tmp_path: Path, torch_python: Path
) -> None:
    """W&B's own agent asks, on rank 0 alone, until the sweep has no trial left."""
    file = write_sweep(tmp_path / "p", "", parameters={"lr": {"values": [1e-5]}})
    settings = json.loads(file.read_text())
    api = api_of(state_folder)

    def create() -> CreatedSweep:
        return api.sweeps.create(settings, project="p")

    def take(*words: str) -> list[Ended]:
        return run_ranks(
            torch_python,
            PROGRAMS / "sweep_ranks.py",
            words,
            RUNYARD_CHECKPOINT_DIR=str(tmp_path / "c"),
            WANDB_DIR=str(tmp_path),
            **stock_client(state_folder),
        )

    made = create()
    path = f"{made['entity']}/p/{made['id']}"
    # One trial, then none is left, then rank 0 fails to get one.
    ended = take("trains", path, path, f"{made['entity']}/p/notthere")
    for number, rank in enumerate(ended):
        assert rank.returncode == 1, rank.stderr
        lines = [line for line in rank.stdout.splitlines() if line.startswith(("rank", "trial"))]
        assert lines == [
            f"rank {number} trains with {{'lr': 1e-05}}", "trial: True", "trial: False",
        ]  # fmt: skip
    assert f"rank 0 could not take a trial of sweep {made['entity']}/p/notthere" in ended[1].stderr
    (trial,) = api.sweeps.trials(made["key"])
    assert (trial["state"], trial["values"], trial["attempts"]) == ("finished", {"lr": 1e-5}, 1)
    # Both calls were rank 0's: the other one is no agent.
    assert len(api.sweeps.work(made["key"])["agents"]) == 2

    # The exit code that means 'go on with me later' is that of all ranks.
    again = create()
    ended = take("time-is-up", f"{again['entity']}/p/{again['id']}")
    assert [rank.returncode for rank in ended] == [75, 75], ended[0].stderr + ended[1].stderr


def test_a_rank_alone_needs_no_process_group(tmp_path: Path) -> None:
    program = (
        "from runyard import train\n"
        "ranks = train.distributed()\n"
        "assert ranks.main and ranks.mean(3) == 3 and ranks.split(7) == 7\n"
        "assert ranks.from_main(lambda: 5) == 5\n"
        "ranks.wait(); ranks.close()\n"
        "import sys; assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=program_environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
