"""Logs of a job's tasks, found and read as they grow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runyard.actions.watching.job_logs import LogFile, find_logs
from runyard.shapes.jobs import Job

HOSTILE = ["plain", "with space", "quo'te", "[brackets]", "star*", "per%%cent", "ünï"]


def _job(pattern: str, **more: Any) -> Job:
    job: Any = {"job_id": "40", "array": "1-11", "name": "grid", "log_pattern": pattern, **more}
    found: Job = job
    return found


@pytest.mark.parametrize("name", HOSTILE)
def test_the_logs_of_an_array_in_the_order_of_its_tasks(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name.replace("%%", "%")
    folder.mkdir()
    for task in (2, 10, 1):
        (folder / f"40_{task}.log").touch()
    (folder / "402_1.log").touch()
    job = _job(f"{tmp_path}/{name}/%A_%a.log")
    assert [log.label for log in find_logs(job)] == ["40_1", "40_2", "40_10"]
    assert [log.label for log in find_logs(job, "10")] == ["40_10"]
    assert find_logs(job, "7") == []


def test_a_job_over_nodes_has_a_log_of_each(tmp_path: Path) -> None:
    for name in ("x-40.log", "x-40-n1.log", "x-40-n2.log", "x-41.log"):
        (tmp_path / name).touch()
    job = _job(f"{tmp_path}/x-%j.log", array=None)
    assert {log.label for log in find_logs(job)} == {"40", "40-n1", "40-n2"}


def test_no_pattern_no_logs() -> None:
    assert find_logs(_job("")) == []


def test_lines_come_whole_and_once(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\ntwo\nhal")
    log = LogFile(path, "a")
    assert log.read() == ["one", "two"]
    with path.open("ab") as file:
        file.write(b"f\r\n\xff\n")
    assert log.read() == ["half", "\N{REPLACEMENT CHARACTER}"]
    assert log.read() == []
    path.write_bytes(b"anew")  # A job that was requeued without append begins its log again.
    assert log.read() == []
    assert log.finish() == ["anew"]


@pytest.mark.parametrize("count", [0, 1, 3, 5000])
def test_the_last_lines_of_a_long_file(tmp_path: Path, count: int) -> None:
    path = tmp_path / "a.log"
    lines = [f"{number} {'x' * 40}" for number in range(4000)]
    path.write_text("\n".join(lines) + "\n")
    log = LogFile(path, "a")
    log.skip_to_last(count)
    assert log.read() == (lines[-count:] if count else [])


def test_a_file_that_is_not_there_yet(tmp_path: Path) -> None:
    assert LogFile(tmp_path / "none", "a").read() == []
