"""What a checkpoint holds, which one is taken, which are kept."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from runyard import train
from runyard.save_protocol import MANIFEST
from runyard.train import folders
from tests.train.frameworks import program_environment


class Adam(NamedTuple):
    mean: Any
    square: Any
    steps: int


class Counter:
    """Anything that states itself as torch's objects do."""

    def __init__(self) -> None:
        self.count = 0

    def state_dict(self) -> dict[str, int]:
        return {"count": self.count}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.count = state["count"]


class Notes:
    """Anything that writes files of its own, as Orbax does."""

    def __init__(self, text: str) -> None:
        self.text = text

    def save(self, folder: Path) -> None:
        (folder / "inner").mkdir()
        (folder / "inner" / "notes.txt").write_text(self.text)

    def load(self, folder: Path) -> None:
        self.text = (folder / "inner" / "notes.txt").read_text()


def test_without_a_checkpoint_training_starts_at_zero(tmp_path: Path) -> None:
    assert train.Checkpoint(folder=tmp_path / "none", weights=np.zeros(3)).resume() == 0


def test_everything_comes_back_as_it_was(tmp_path: Path) -> None:
    counter = Counter()
    counter.count = 7
    values: dict[str, Any] = {
        "weights": np.arange(6.0).reshape(2, 3).T,  # Not in one piece in memory.
        "small": np.float32(0.1),
        "half": np.ones(2, np.float16),
        "none": np.zeros((0, 3)),
        "big": np.arange(4, dtype=">i8"),
        "epoch": 12,
        "loss": 0.1 + 0.2,
        "worst": float("inf"),
        "name": "a \u00fc 'quoted' name",
        "raw": bytes(range(256)),
        "nothing": None,
        "tree": {"layers": [np.ones(2), (1, 2.5)], 3: {"deep": True}},
        "optimizer": Adam(np.zeros(2), np.ones(2), 5),
        "counter": counter,
        "notes": Notes("kept"),
    }
    assert train.Checkpoint(folder=tmp_path, **values).save(40)

    fresh = Counter()
    notes = Notes("")
    empty: dict[str, Any] = dict.fromkeys(values) | {
        "optimizer": Adam(np.ones(2), np.zeros(2), 0),
        "counter": fresh,
        "notes": notes,
    }
    state = train.Checkpoint(folder=tmp_path, **empty)
    assert state.resume() == 40
    for name in ("weights", "small", "half", "none", "big"):
        assert np.array_equal(getattr(state, name), values[name])
        assert getattr(state, name).dtype == values[name].dtype
    for name in ("epoch", "loss", "worst", "name", "raw", "nothing"):
        assert getattr(state, name) == values[name]
    assert state.tree["layers"][1] == (1, 2.5)
    assert state.tree[3] == {"deep": True}
    assert isinstance(state.optimizer, Adam)
    assert state.optimizer.steps == 5
    assert fresh.count == 7
    assert notes.text == "kept"


def test_what_can_be_filled_in_place_is(tmp_path: Path) -> None:
    """So that the program's own variables are right too, not only the checkpoint's."""
    parts: dict[str, Any] = {
        "rng": np.random.default_rng(5),
        "own": random.Random(6),
        "log": [1, 2],
    }
    train.Checkpoint(folder=tmp_path, weights=np.ones(3), **parts).save(1)
    weights, log = np.zeros(3), []  # type: ignore[var-annotated]
    rng, own = np.random.default_rng(0), random.Random(0)
    state = train.Checkpoint(folder=tmp_path, weights=weights, log=log, rng=rng, own=own)
    state.resume()
    assert weights.tolist() == [1, 1, 1]
    assert log == [1, 2]
    assert rng.random() == np.random.default_rng(5).random()
    assert own.random() == random.Random(6).random()


def test_the_random_states_of_python_and_numpy_go_on(tmp_path: Path) -> None:
    state = train.Checkpoint(folder=tmp_path)
    state.save(1)
    expected = random.random(), np.random.rand()
    train.Checkpoint(folder=tmp_path).resume()
    assert (random.random(), np.random.rand()) == expected


def test_what_is_drawn_between_resuming_and_the_loop_changes_nothing(tmp_path: Path) -> None:
    train.Checkpoint(folder=tmp_path).save(1)
    expected = random.random()
    state = train.Checkpoint(folder=tmp_path)
    start = state.resume()
    random.random()
    for _ in train.steps(start, 2, state):
        assert random.random() == expected


def flip_a_bit(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(data)


def cut_short(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 1)


@pytest.mark.parametrize("harm", [flip_a_bit, cut_short, Path.unlink])
@pytest.mark.parametrize("file", ["weights.tree", "_random.tree", MANIFEST])
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], harm: Any, file: str
) -> None:
    state = train.Checkpoint(folder=tmp_path, weights=np.zeros(1000))
    for step in (10, 20):
        state.weights[:] = step
        state.save(step)
    harm(tmp_path / "latest" / file)

    weights = np.zeros(1000)
    assert train.Checkpoint(folder=tmp_path, weights=weights).resume() == 10
    assert set(weights) == {10.0}
    told = capfd.readouterr().err
    assert "the checkpoint of step 20 is damaged and passed over" in told
    assert "kept as" in told


def test_a_damaged_one_does_not_count_among_those_that_are_kept(tmp_path: Path) -> None:
    state = train.Checkpoint(folder=tmp_path, weights=np.zeros(9), keep=2)
    for step in (10, 20):
        state.save(step)
    flip_a_bit(tmp_path / "latest" / "weights.tree")
    state = train.Checkpoint(folder=tmp_path, weights=np.zeros(9), keep=2)
    assert state.resume() == 10
    state.save(15)
    assert [entry.step for entry in folders.saved(tmp_path)] == [10, 15]


def test_the_last_ones_and_the_best_are_kept(tmp_path: Path) -> None:
    state = train.Checkpoint(folder=tmp_path, keep=2, every_steps=1)
    scores = [5.0, 2.0, float("nan"), 3.0, 4.0]
    for step in train.steps(0, 5, state):
        state.score(scores[step])
    assert [entry.step for entry in folders.saved(tmp_path)] == [2, 4, 5]
    assert (tmp_path / "best").resolve().name.endswith("-step-2")
    assert (tmp_path / "latest").resolve().name.endswith("-step-5")


def test_the_best_score_survives_a_resume(tmp_path: Path) -> None:
    state = train.Checkpoint(folder=tmp_path, best="max", every_seconds=1e9)
    for _ in train.steps(0, 2, state):
        state.score(0.9)
    again = train.Checkpoint(folder=tmp_path, best="max", every_seconds=1e9)
    start = again.resume()
    assert (again.best_score, again.best_step) == (0.9, 2)
    for _ in train.steps(start, 4, again):
        assert not again.score(0.5)
    assert (tmp_path / "best").resolve().name.endswith("-step-2")


def test_a_run_that_starts_anew_is_not_lost_among_older_ones(tmp_path: Path) -> None:
    """Without resume() it counts from one again, in a folder that has later steps."""
    for _ in range(2):
        state = train.Checkpoint(folder=tmp_path, every_steps=1, keep=1)
        for _ in train.steps(0, 3, state):
            pass
        state.save(2)
    assert [entry.step for entry in folders.saved(tmp_path)] == [2]


def as_attempt(number: int, monkeypatch: pytest.MonkeyPatch, run: str = "r1") -> None:
    monkeypatch.setenv("RUNYARD_ATTEMPT", str(number))
    monkeypatch.setenv("WANDB_RUN_ID", run)


def test_an_attempt_that_is_heard_again_destroys_nothing_of_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its node was cut off, or it was suspended, while the run went on elsewhere."""
    as_attempt(1, monkeypatch)
    first = train.Checkpoint(folder=tmp_path, x=1)
    first.resume()
    first.save(5)
    as_attempt(2, monkeypatch)
    second = train.Checkpoint(folder=tmp_path, x=1)
    assert second.resume() == 5
    as_attempt(1, monkeypatch)
    with pytest.raises(SystemExit) as before_a_save:
        first.save(6)
    as_attempt(2, monkeypatch)
    second.save(50)
    second.save(60)
    as_attempt(1, monkeypatch)
    with pytest.raises(SystemExit) as after_saves:
        first.save(7)
    with pytest.raises(SystemExit):
        train.Checkpoint(folder=tmp_path, x=1).resume()  # It had not come to that yet.
    # The code 75 would have it started again.
    assert before_a_save.value.code == after_saves.value.code == 1
    assert "attempt 2 has gone on with the run meanwhile" in capfd.readouterr().err
    assert [entry.step for entry in folders.saved(tmp_path)] == [50, 60]

    as_attempt(3, monkeypatch)
    third = train.Checkpoint(folder=tmp_path, x=1)
    assert third.resume() == 60
    third.save(70)
    assert [entry.step for entry in folders.saved(tmp_path)] == [60, 70]


def test_an_attempt_that_was_suspended_in_a_save_destroys_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(Notes):
        """While it is written, the run goes on elsewhere."""

        def save(self, folder: Path) -> None:
            super().save(folder)
            as_attempt(2, monkeypatch)
            second = train.Checkpoint(folder=tmp_path, every_steps=1)
            for step in (50, 60):
                second.save(step)
            as_attempt(1, monkeypatch)

    as_attempt(1, monkeypatch)
    with pytest.raises(SystemExit):
        train.Checkpoint(folder=tmp_path, notes=Slow("late")).save(6)
    assert [entry.step for entry in folders.saved(tmp_path)] == [50, 60]


def test_a_later_attempts_checkpoints_are_not_tidied_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_attempt(2, monkeypatch)
    state = train.Checkpoint(folder=tmp_path, keep=9)
    for step in (50, 60, 70):
        state.save(step)
    as_attempt(1, monkeypatch)
    folders.tidy(tmp_path, 1, None)
    assert [entry.step for entry in folders.saved(tmp_path)] == [50, 60, 70]


def test_another_runs_attempts_and_none_are_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new run in the folder of an older one; a program without runyard."""
    as_attempt(3, monkeypatch)
    train.Checkpoint(folder=tmp_path).save(1)
    as_attempt(1, monkeypatch, run="r2")
    assert train.Checkpoint(folder=tmp_path).save(2)
    monkeypatch.delenv("RUNYARD_ATTEMPT")
    assert train.Checkpoint(folder=tmp_path).save(3)


FULL_DISK = """
import resource, sys
import numpy as np
from runyard import train

weights = np.zeros(2000)
state = train.Checkpoint(weights=weights, every_steps=1, strict=len(sys.argv) > 1)
for step in train.steps(state.resume(), 4, state, show=False):
    weights += 1
    if step == 1:  # From now on the system refuses files of more than a few bytes.
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
print("through with", weights[0])
"""


def test_a_full_disk_leaves_the_checkpoint_before_it(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    environment = program_environment(RUNYARD_CHECKPOINT_DIR=str(folder))
    ended = subprocess.run(
        [sys.executable, "-c", FULL_DISK], env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert "through with 4.0" in ended.stdout
    assert "the checkpoint of step 3 could not be saved" in ended.stderr
    assert "the one of step 1 stays" in ended.stderr
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    weights = np.zeros(2000)
    assert train.Checkpoint(folder=folder, weights=weights).resume() == 1
    assert weights[0] == 1

    strict = subprocess.run(
        [sys.executable, "-c", FULL_DISK, "strict"], env=environment, capture_output=True, text=True
    )
    assert strict.returncode == 1
    assert "File too large" in strict.stderr


def test_a_checkpoint_of_another_program_is_refused_with_the_reason(tmp_path: Path) -> None:
    train.Checkpoint(folder=tmp_path, weights=np.zeros(3)).save(1)
    with pytest.raises(train.TrainError, match=r"holds shape \(3,\), the program has \(4,\)"):
        train.Checkpoint(folder=tmp_path, weights=np.zeros(4)).resume()
    with pytest.raises(train.TrainError, match="has no part 'bias'"):
        train.Checkpoint(folder=tmp_path, bias=np.zeros(3)).resume()


def test_what_cannot_be_saved_is_told_before_training(tmp_path: Path) -> None:
    state = train.Checkpoint(folder=tmp_path, deep={"file": sys.stdout})
    with pytest.raises(train.TrainError, match=r"deep: .*\['file'\]"):
        state.resume()


def test_a_part_must_not_be_named_like_a_method(tmp_path: Path) -> None:
    with pytest.raises(train.TrainError, match="cannot be called 'save'"):
        train.Checkpoint(folder=tmp_path, save=1)


def test_a_value_that_was_never_assigned_is_pointed_out(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    state = train.Checkpoint(folder=tmp_path, epoch=1000, every_steps=1)
    for _ in train.steps(0, 2, state):
        pass
    assert "'epoch' has not changed" in capfd.readouterr().err


def test_the_folder_of_the_trial_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNYARD_CHECKPOINT_DIR", str(tmp_path / "trial"))
    train.Checkpoint().save(1)
    assert folders.saved(tmp_path / "trial")
    monkeypatch.delenv("RUNYARD_CHECKPOINT_DIR")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["/some/where/train.py"])
    train.Checkpoint().save(1)
    assert folders.saved(tmp_path / "checkpoints" / "train")


def test_the_wandb_run_is_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = pytest.importorskip("wandb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_SILENT", "true")
    state = train.Checkpoint(folder=tmp_path / "checkpoints")
    assert state.wandb() == {}
    with wandb.init(mode="offline") as run:
        run.log({"loss": 1})
        state.save(1)
    manifest = json.loads((tmp_path / "checkpoints" / "latest" / MANIFEST).read_text())
    assert manifest["wandb"] == {"id": run.id, "step": 1}
    again = train.Checkpoint(folder=tmp_path / "checkpoints")
    assert again.wandb() == {"id": run.id, "resume": "allow"}
    monkeypatch.setenv("WANDB_RUN_ID", "given")
    assert again.wandb()["id"] == "given"
