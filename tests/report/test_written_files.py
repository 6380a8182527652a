"""Tables and reports in a folder where other users can write."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard.report.export import write_table
from runyard.report.files import write
from tests.report.example import report

ROWS = [{"run": "one", "name": "é", "loss": 0.5}]


@pytest.mark.parametrize(
    ("name", "write_to"),
    [
        ("runs.csv", lambda path: write_table(ROWS, path, "csv")),
        ("runs.jsonl", lambda path: write_table(ROWS, path, "jsonl")),
        ("runs.parquet", lambda path: write_table(ROWS, path, "parquet")),
        ("report.json", lambda path: list(write(report(), path))),
    ],
)
def test_a_link_that_waits_there_is_not_followed(
    tmp_path: Path, name: str, write_to: Callable[[Path], object]
) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    victim = tmp_path / "victim"
    victim.write_text("mine")
    planted = tmp_path / f".{name}.{os.getpid()}.part"
    planted.symlink_to(victim)
    write_to(tmp_path / name)
    assert victim.read_text() == "mine"
    assert planted.is_symlink()
    written = tmp_path / name
    assert written.is_file()
    assert not written.is_symlink()
    assert written.stat().st_size > 10
