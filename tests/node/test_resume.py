"""From which checkpoint an agent believes that its program will go on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard import train
from runyard.node.attempt import resume
from runyard.node.attempt.checkpoints import saved_at
from runyard.node.system.loop import Loop
from runyard.save_protocol import MANIFEST


def found_in(folder: Path) -> float | None:
    loop, helpers, answers = Loop(), set[int](), list[float | None]()
    resume.find_checkpoint(loop, helpers, str(folder), answers.append)
    while not answers:
        loop.turn()
    loop.close()
    for helper in helpers:
        os.waitpid(helper, 0)
    return answers[0]


def save(folder: Path, *steps: int) -> list[float]:
    state = train.Checkpoint(folder=folder, weights=[0.0] * 100)
    for step in steps:
        state.save(step)
    return [
        json.loads((path / MANIFEST).read_bytes())["saved_at"]
        for path in sorted(folder.glob("0*-step-*"))
    ]


def change_a_byte(checkpoint: Path) -> None:
    file = checkpoint / "weights.tree"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


def lose_the_manifest(checkpoint: Path) -> None:
    (checkpoint / MANIFEST).unlink()


@pytest.mark.parametrize("harm", [change_a_byte, lose_the_manifest])
def test_it_is_the_one_before_a_damaged_one_as_the_program_has_it(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    older, newest = save(tmp_path, 10, 20)
    assert found_in(tmp_path) == newest
    harm((tmp_path / "latest").resolve())
    assert found_in(tmp_path) == older
    assert train.Checkpoint(folder=tmp_path, weights=[]).resume() == 10
    assert found_in(tmp_path) == older


def test_without_a_whole_one_the_program_begins_anew(tmp_path: Path) -> None:
    save(tmp_path, 10)
    change_a_byte((tmp_path / "latest").resolve())
    assert found_in(tmp_path) is None


def test_of_other_programs_the_newest_file_tells(tmp_path: Path) -> None:
    assert found_in(tmp_path) is None
    (tmp_path / "model.pt").write_bytes(b"weights")
    assert found_in(tmp_path) == saved_at(str(tmp_path))
    (tmp_path / "last-step-1").mkdir()
    (tmp_path / "last-step-1" / MANIFEST).write_text("{}")  # Of a format of their own.
    assert found_in(tmp_path) == saved_at(str(tmp_path))


def test_a_file_system_that_hangs_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, newest = save(tmp_path, 10, 20)
    change_a_byte((tmp_path / "latest").resolve())
    monkeypatch.setattr(resume, "_VERIFY_SECONDS", 0.01)
    monkeypatch.setattr(resume, "chosen_at", lambda _manifests: os.read(os.pipe()[0], 1))
    assert found_in(tmp_path) == newest
