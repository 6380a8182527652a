"""kill -9 at any moment: what was answered is there, once, and the database is sound."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runyard.server.processes.console_lines import get_lines
from runyard.server.store.database import Database
from tests.server.conftest import a_run

pytestmark = pytest.mark.live

_MOMENTS = 20


def test_every_answered_line_outlives_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "runyard.db"
    database = Database(path)
    database.open()
    key = a_run(database)
    database.close()
    chance = random.Random(9)
    acknowledged, going_on = set[int](), 0
    for _ in range(_MOMENTS):
        acknowledged |= _write_and_kill(path, key, going_on, chance.uniform(0.0, 0.25))
        lines = _read(path, key)
        numbers = [number for number, _ in lines]
        assert len(set(numbers)) == len(numbers)
        assert acknowledged <= set(numbers)
        for number, text in lines:
            assert text == f"line {number} " + "x" * (number % 700)
        # The next life sends again what was not answered, as a client does.
        going_on = max(acknowledged, default=-1) + 1
    assert acknowledged == set(range(going_on))
    assert going_on > _MOMENTS


def _write_and_kill(path: Path, key: int, first: int, seconds: float) -> set[int]:
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.server.numbered_writer", str(path), str(key), str(first)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    with child.stdout as said:
        heard = [said.readline()]  # From its first answer on, at any moment.
        time.sleep(seconds)
        child.kill()
        heard += said.readlines()
    child.wait()
    return {int(line) for line in heard if line.endswith("\n")}


def _read(path: Path, key: int) -> list[tuple[int, str]]:
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    lines = list(get_lines(connection, key, "history"))
    connection.close()
    return lines
