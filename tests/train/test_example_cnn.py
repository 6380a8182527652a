"""The CNN regressor: on one rank and two, cut off and resumed, tracked by the real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runyard.train import Params, folders
from tests.conftest import RunRunyard
from tests.live.programs import list_runs
from tests.train.frameworks import ROOT, program_environment
from tests.train.warm import WarmPython

pytestmark = [pytest.mark.frameworks, pytest.mark.live]

EXAMPLE = ROOT / "examples" / "cnn_regressor" / "train.py"
LOGGED = {
    "train_loss", "grad", "val_loss", "best_val_loss", "best_epoch", "wt_norm", "learning_rate",
    "time_per_epoch", "image",
}  # fmt: skip


def weights_of(folder: Path) -> tuple[int, str]:
    """The step of the newest checkpoint, and the digest of its model."""
    entry = folders.saved(folder / "checkpoints")[-1]
    digest: str = folders.verify(entry.path)["files"]["model.pt"][1]
    return entry.step, digest


def test_tracked_on_one_rank(runyard: RunRunyard, torch_python: Path, tmp_path: Path) -> None:
    ended = runyard(
        "run", "--", str(torch_python), str(EXAMPLE),
        "--config=laptop", f"--root_dir={tmp_path}", "--max_epochs=3", "--lr=2E-3",
        env=program_environment(), cwd=tmp_path, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    (run,) = list_runs(runyard)
    assert run["state"] == "finished"
    summary: dict[str, Any] = run["summary"]
    assert set(summary) >= LOGGED
    assert summary["_step"] == 3
    # Nothing can be learnt but the mean: from 0.33 towards 1/12.
    assert 1 / 12 < summary["val_loss"] < 0.2
    assert (summary["progress/step"], summary["progress/total"]) == (3, 3)
    assert run["config"]["lr"] == 0.002
    assert run["config"]["train_path"] is None
    folder = tmp_path / "expts" / "laptop" / "0"
    assert Params.load(folder / "hyperparams.yaml").lr == 0.002
    assert Params.load(folder / "hyperparams.yaml").name == "laptop-0"
    assert (folder / "wandb").is_dir()
    assert weights_of(folder)[0] == 3


def test_on_two_ranks_an_interrupted_run_ends_like_an_uncut_one(
    warm: WarmPython, tmp_path: Path
) -> None:
    words = ["--config=laptop", "--log_to_wandb=False", "--scheduler=cosine"]
    uncut = tmp_path / "uncut"
    ended = warm.run_ranks(EXAMPLE, [*words, f"--root_dir={uncut}"])
    assert [rank.returncode for rank in ended] == [0, 0], ended[0].stderr + ended[1].stderr
    assert "epoch 4" in ended[0].stdout
    assert ended[1].stdout == ""

    cut = tmp_path / "cut"
    stop = tmp_path / "stop"
    stop.touch()  # From the start: every attempt does one epoch and leaves.
    place = Path("expts", "laptop", "0")
    for epoch in (1, 2):
        ended = warm.run_ranks(EXAMPLE, [*words, f"--root_dir={cut}"], RUNYARD_STOP_FILE=str(stop))
        assert [rank.returncode for rank in ended] == [75, 75], ended[0].stderr
        assert weights_of(cut / place)[0] == epoch
    ended = warm.run_ranks(EXAMPLE, [*words, f"--root_dir={cut}"])
    assert [rank.returncode for rank in ended] == [0, 0], ended[0].stderr
    assert "epoch 2" not in ended[0].stdout
    assert weights_of(cut / place) == weights_of(uncut / place)
    manifests = [
        json.loads((folder / place / "checkpoints" / "latest" / folders.MANIFEST).read_text())
        for folder in (uncut, cut)
    ]
    assert manifests[0]["best"][:2] == manifests[1]["best"][:2]


def test_an_unknown_model_is_refused(warm: WarmPython, tmp_path: Path) -> None:
    words = ["--config=laptop", "--log_to_wandb=False", f"--root_dir={tmp_path}", "--model=vit"]
    ended = warm.run(EXAMPLE, *words)
    assert ended.returncode == 1
    assert "model: vit is unknown; there is cnn" in ended.stderr


def test_a_batch_size_that_does_not_divide_is_told() -> None:
    from runyard import train
    from runyard.train.placement import Placement

    ranks = train.Ranks(Placement(rank=1, size=4))
    assert ranks.split(32) == 8
    with pytest.raises(train.TrainError, match=r"30 cannot be split over 4 ranks\n.*28 or 32"):
        ranks.split(30)


def test_the_default_configuration_is_beside_the_program() -> None:
    beside = EXAMPLE.with_name("config.yaml")
    test, test2 = (Params.load(beside, section) for section in ("test", "test2"))
    assert test.lr == 0.001
    assert test2 == test | {"batch_size": 16}
