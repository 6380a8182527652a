"""The CNN regressor on two ranks: who reads, prints, logs, draws and writes what."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.train.frameworks import ROOT
from tests.train.ranks import Ended, run_ranks

pytestmark = pytest.mark.frameworks

EXAMPLE = ROOT / "examples" / "cnn_regressor"
WATCHED = Path(__file__).parent / "programs" / "watched_regressor.py"
SAMPLES, EPOCHS = 16, 2


@dataclass
class Training:
    """Both ranks at their end, and what was noted of each."""

    ranks: list[Ended]
    notes: list[dict[str, Any]]
    folder: Path

    def reads(self, rank: int, epoch: int, *, training: bool) -> list[float]:
        """The numbers of the samples of one epoch."""
        return [n for batch in self.batches(rank, epoch, training=training) for n in batch]

    def batches(self, rank: int, epoch: int, *, training: bool) -> list[list[float]]:
        batches = [
            read for was_training, read in self.notes[rank]["reads"] if was_training == training
        ]
        each = len(batches) // EPOCHS
        return batches[epoch * each : (epoch + 1) * each]


def train(python: Path, folder: Path, *words: str) -> Training:
    options = [
        "--config=laptop", f"--root_dir={folder}", f"--max_epochs={EPOCHS}", "--batch_size=8",
        "--valid_batch_size=4", *words,
    ]  # fmt: skip
    ended = run_ranks(
        python, WATCHED, [str(EXAMPLE), str(folder / "notes"), *options],
        WANDB_MODE="offline", WANDB_SILENT="true", HOME=str(folder),
    )  # fmt: skip
    files = [folder / f"notes-{rank}.json" for rank in range(2)]
    notes = [json.loads(file.read_text()) for file in files if file.exists()]
    return Training(ended, notes, folder / "expts" / "laptop" / "0")


@pytest.fixture(scope="module")
def training(torch_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Training:
    done = train(torch_python, tmp_path_factory.mktemp("watched"))
    assert [rank.returncode for rank in done.ranks] == [0, 0], done.ranks[0].stderr
    return done


def test_the_model_is_in_ddp_and_rank_0_writes_a_checkpoint_after_every_epoch(
    training: Training,
) -> None:
    assert [notes["model"] for notes in training.notes] == ["DistributedDataParallel"] * 2
    assert [notes["backend"] for notes in training.notes] == ["gloo"] * 2
    # Rank 0 writes one after every epoch, and no other rank does.
    assert [notes["written"] for notes in training.notes] == [[1, 2], []]


def test_each_rank_reads_its_own_part_and_another_order_in_each_epoch(training: Training) -> None:
    orders = []
    for epoch in range(EPOCHS):
        parts = [training.reads(rank, epoch, training=True) for rank in range(2)]
        assert sorted(parts[0] + parts[1]) == list(range(SAMPLES))
        orders.append(parts)
        validated = [training.reads(rank, epoch, training=False) for rank in range(2)]
        assert sorted(validated[0] + validated[1]) == list(range(SAMPLES))
    assert orders[0][0] != orders[1][0]
    assert orders[0][1] != orders[1][1]


def test_a_rank_has_its_share_of_the_batch_in_training_and_validation(training: Training) -> None:
    for rank, notes in enumerate(training.notes):
        assert notes["batches"] == [4, 2]
        assert {len(batch) for batch in training.batches(rank, 0, training=True)} == {4}
        assert {len(batch) for batch in training.batches(rank, 0, training=False)} == {2}


def test_a_batch_size_that_does_not_divide_ends_all_ranks(
    torch_python: Path, tmp_path: Path
) -> None:
    done = train(torch_python, tmp_path, "--valid_batch_size=7", "--log_to_wandb=False")
    for rank in done.ranks:
        assert rank.returncode == 1
        assert "valid_batch_size 7 cannot be split over 2 ranks" in rank.stderr
        assert "6 or 8" in rank.stderr
    assert done.notes == []


def test_losses_and_gradients_are_averaged_over_the_ranks(training: Training) -> None:
    first, second = training.notes
    for epoch in range(EPOCHS):
        for name in ("train_loss", "grad", "val_loss"):
            own = [notes["own"][epoch][name] for notes in (first, second)]
            # Of gradients that DDP has averaged already.
            assert (own[0] != own[1]) == (name != "grad")
            assert [notes["logged"][epoch][name] for notes in (first, second)] == [sum(own) / 2] * 2


def test_target_and_prediction_are_drawn_side_by_side_logged_and_closed(training: Training) -> None:
    drawn = training.notes[0]["drawn"]
    assert [list(figure) for figure in drawn] == [["target", "prediction"]] * EPOCHS
    for figure in drawn:
        assert figure["target"] == [[0.0] * 4] * 4  # Of the first sample.
        assert figure["prediction"] != figure["target"]
    assert training.notes[0]["left_open"] == []
    images = sorted((training.folder / "wandb").glob("offline-run-*/files/media/images/*.png"))
    assert len(images) == EPOCHS
    for image in images:
        width, height = struct.unpack(">II", image.read_bytes()[16:24])
        assert width == 2 * height


def test_rank_0_alone_prints_and_talks_to_wandb(training: Training) -> None:
    assert "epoch 2: train_loss" in training.ranks[0].stdout
    assert "on 2 x cpu" in training.ranks[0].stdout
    assert training.ranks[1].stdout == ""
    assert [notes["wandb"] for notes in training.notes] == [True, False]
    assert len(list((training.folder / "wandb").glob("offline-run-*"))) == 1


def test_printing_and_wandb_can_be_switched_off(torch_python: Path, tmp_path: Path) -> None:
    quiet = train(torch_python, tmp_path, "--log_to_screen=False", "--log_to_wandb=False")
    assert [rank.returncode for rank in quiet.ranks] == [0, 0], quiet.ranks[0].stderr
    assert [rank.stdout for rank in quiet.ranks] == ["", ""]
    assert [notes["wandb"] for notes in quiet.notes] == [False, False]
    assert list((quiet.folder / "wandb").iterdir()) == []
    assert (quiet.folder / "checkpoints" / "latest").exists()
