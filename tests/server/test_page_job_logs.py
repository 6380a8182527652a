"""A job's log on the page: the tasks' files together, as they grow, and nobody else's files."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from runyard.server.jobs import job_logs
from tests.server.asgi import Client
from tests.server.persons import Person


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A name that a shell, a glob and Slurm would each read in their own way."""
    found = tmp_path / "lo gs [1] 'x'"
    found.mkdir()
    return found


def a_job(who: Client | Person, pattern: Path | str, **more: Any) -> Any:
    new = {"job_id": "40", "kind": "agents", "array": "1-9", "log_pattern": str(pattern), **more}
    answer = who.post("/api/jobs", new)
    assert answer.status == 200, answer.text
    return answer.json()


def end(client: Client, job: Any) -> None:
    news = {"key": job["key"], "polled_at": time.time(), "states": {}, "ended_at": time.time()}
    assert client.post("/api/jobs/news", {"news": [news]}).status == 200


def look(who: Client | Person, job: Any, **given: Any) -> Any:
    answer = who.post(f"/api/jobs/{job['key']}/log", given)
    assert answer.status == 200, answer.text
    return answer.json()


def lines(told: Any) -> list[tuple[str, str]]:
    return [(one["task"], line) for one in told["pieces"] for line in one["text"].splitlines()]


def test_all_tasks_together_and_then_what_is_new(client: Client, folder: Path) -> None:
    job = a_job(client, folder / "%A_%a.log")
    (folder / "40_2.log").write_text("two\nhalf a li")
    (folder / "40_10.log").write_bytes("zehn: 10 µs\n".encode())
    first = look(client, job)
    assert lines(first) == [("40_2", "two"), ("40_10", "zehn: 10 µs")]
    assert (first["tasks"], first["ended"], first["unread"]) == (["40_2", "40_10"], False, None)
    with (folder / "40_2.log").open("a") as file:
        file.write("ne\nlast words")
    (folder / "40_1.log").write_text("came late\n")
    second = look(client, job, after=first["after"])
    assert lines(second) == [("40_1", "came late"), ("40_2", "half a line")]
    assert lines(look(client, job, after=second["after"])) == []
    end(client, job)
    assert lines(look(client, job, after=second["after"])) == [("40_2", "last words")]
    assert lines(look(client, job, task="10")) == [("40_10", "zehn: 10 µs")]


def test_of_a_long_log_the_end_comes_first(
    client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_logs, "_ENOUGH", 400)
    monkeypatch.setattr(job_logs, "_LEAST", 400)
    monkeypatch.setattr(job_logs, "_PAGE", 1000)
    (folder / "40_1.log").write_text("".join(f"line {number}\n" for number in range(500)))
    job = a_job(client, folder / "%A_%a.log")
    told = look(client, job)
    assert told["pieces"][0]["cut"] is True
    assert lines(told)[-1] == ("40_1", "line 499")
    assert lines(told)[0][1].startswith("line 4")
    page = look(client, job, whole=True)
    found = lines(page)
    while page["more"]:
        page = look(client, job, after=page["after"], whole=True)
        found += lines(page)
    assert [line for _, line in found] == [f"line {number}" for number in range(500)]


def test_a_file_that_is_begun_anew_is_read_anew(client: Client, folder: Path) -> None:
    file = folder / "40_1.log"
    file.write_text("the first time\n")
    job = a_job(client, folder / "%A_%a.log")
    after = look(client, job)["after"]
    file.write_text("again\n")
    told = look(client, job, after=after)
    assert lines(told) == [("40_1", "again")]
    assert told["pieces"][0]["cut"] is True


def test_the_server_reads_its_owners_jobs_and_files_alone(
    client: Client, bob: Person, folder: Path
) -> None:
    (folder / "40_1.log").write_text("a secret of the owner's\n")
    theirs = a_job(bob, folder / "%A_%a.log")
    told = look(bob, theirs)
    assert (told["pieces"], "reads only its owner's" in told["unread"]) == ([], True)
    assert look(client, theirs)["pieces"] == []
    mine = a_job(client, folder / "%A_%a.log")
    assert bob.post(f"/api/jobs/{mine['key']}/log", {}).status == 404


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to somebody else")
def test_a_file_of_somebody_elses_is_not_read(client: Client, folder: Path) -> None:
    (folder / "40_1.log").write_text("not yours\n")
    os.chown(folder / "40_1.log", 12345, -1)
    told = look(client, a_job(client, folder / "%A_%a.log"))
    assert (told["pieces"], "not a file of the server's user" in told["unread"]) == ([], True)


def test_a_pipe_is_no_log(client: Client, folder: Path) -> None:
    os.mkfifo(folder / "40_1.log")
    told = look(client, a_job(client, folder / "%A_%a.log"))
    assert (told["pieces"], "cannot be read" in told["unread"]) == ([], True)


def test_why_there_is_nothing_is_said(client: Client, folder: Path) -> None:
    assert "has not started" in look(client, a_job(client, folder / "%A_%a.log"))["unread"]
    elsewhere = a_job(client, "/nowhere/at/all/%A_%a.log", job_id="41")
    assert "does not see /nowhere/at/all" in look(client, elsewhere)["unread"]
    without = a_job(client, "", job_id="42")
    assert "without a log file" in look(client, without)["unread"]
    wrong = client.post(f"/api/jobs/{elsewhere['key']}/log", {"task": "../../x"})
    assert (wrong.status, "no task's number" in wrong.text) == (400, True)
