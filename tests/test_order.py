"""The test files that took longest begin first."""

from __future__ import annotations

from pathlib import Path

from tests.order import SECONDS, keep_seconds, read_seconds, turn


def test_the_longest_files_begin_first_then_folders_that_take_long(tmp_path: Path) -> None:
    assert read_seconds(tmp_path) == {}
    keep_seconds(tmp_path, {"tests/cli/a.py": 3.0, "tests/live/b.py": 50.0})
    keep_seconds(tmp_path, {"tests/cli/a.py": 70.04})
    seconds = read_seconds(tmp_path)
    assert seconds == {"tests/cli/a.py": 70.0, "tests/live/b.py": 50.0}
    files = ["tests/cli/new.py", "tests/live/b.py", "tests/slurm/new.py", "tests/cli/a.py"]
    assert sorted(files, key=lambda file: turn(file, seconds)) == [
        "tests/cli/a.py", "tests/live/b.py", "tests/slurm/new.py", "tests/cli/new.py",
    ]  # fmt: skip


def test_without_a_record_folders_that_take_long_begin_first(tmp_path: Path) -> None:
    (tmp_path / SECONDS).parent.mkdir()
    (tmp_path / SECONDS).write_text("half a rec")
    seconds = read_seconds(tmp_path)
    files = ["tests/test_a.py", "tests/live/b.py", "tests/wandb_clients/c.py"]
    assert sorted(files, key=lambda file: turn(file, seconds)) == files[::-1]
