"""Agents share one `squeue`: who asks, what the others read, and what if whoever asks is killed.

squeue is a double that counts its calls; tests/slurm/test_controller_load.py has the real one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard.node.agent.job_end import JobEnd
from runyard.schedulers.inside import this_job
from runyard.schedulers.slurm import job_ends
from runyard.schedulers.slurm.job_ends import JobEnds, Row, read_rows
from tests.node.terminals import until

FRESH = 0.6
HANGS = 60.0
ROW = "7 0 1000 4600 N/A"
# Looks for the time that it is told, and prints what it saw at last.
AGENT = """
import sys, time
from runyard.schedulers.slurm import job_ends
job_ends.FRESH_SECONDS, job_ends._RIGHT_SECONDS = float(sys.argv[2]), float(sys.argv[3])
ends, row = job_ends.JobEnds(sys.argv[1], "one"), None
end = time.monotonic() + float(sys.argv[4])
while time.monotonic() < end:
    row = ends.look("7") or row
    time.sleep(0.02)
ends.close()
print(row and row.end)
"""


Make = Callable[..., JobEnds]


class Squeue:
    """A program that writes down when it was called, and answers with a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._calls = folder / "calls"
        self.program = folder / "squeue"
        self.answer(ROW)

    def answer(self, text: str, *, seconds: float = 0.0, code: int = 0) -> None:
        new = self.program.with_suffix(".new")
        new.write_text(
            f'#!/bin/sh\necho $$ "$@" >> {self._calls}\n'
            f"{'exec ' if seconds >= HANGS else ''}sleep {seconds}\necho '{text}'\nexit {code}\n"
        )
        new.chmod(0o755)
        new.rename(self.program)

    @property
    def calls(self) -> list[str]:
        return self._calls.read_text().splitlines() if self._calls.exists() else []


@pytest.fixture
def squeue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Squeue:
    monkeypatch.setattr(job_ends, "FRESH_SECONDS", FRESH)
    monkeypatch.setattr(job_ends, "_RIGHT_SECONDS", 2 * FRESH)
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return Squeue(folder)


@pytest.fixture
def make_ends(tmp_path: Path) -> Iterator[Make]:
    """Of one agent each, all with the same state folder."""
    made = []

    def make(cluster: str = "one") -> JobEnds:
        made.append(JobEnds(str(tmp_path), cluster))
        return made[-1]

    yield make
    for ends in made:
        ends.close()


def look(ends: JobEnds, job: str = "7") -> Row | None:
    """Until it does not wait for its own squeue."""
    row = ends.look(job)

    def is_settled() -> bool:
        nonlocal row
        row = ends.look(job)
        return not ends.is_asking

    if ends.is_asking:
        until(is_settled, "an answer")
    return row


def start_agent(home: Path, seconds: float, right: float = 2 * FRESH) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", AGENT, str(home), str(FRESH), str(right), str(seconds)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def test_what_squeue_prints() -> None:
    rows = read_rows(
        "12                      0           1000        4600        N/A    \n"
        "13                      2           1000        NONE        N/A    \n"
        "14                      0           1000        1060        1030   \n"
        f"16 0 nan {'9' * 40} -5\n"
        "squeue: error: something else\n\n15 x 1 2 3\n"
    )
    assert {name: row.to_json() for name, row in rows.items()} == {
        "12": [0, 1000, 4600, None],
        "13": [2, 1000, None, None],
        "14": [0, 1000, 1060, 1030],
        "16": [0, 0, None, None],
    }


def test_one_asks_and_the_others_read(squeue: Squeue, tmp_path: Path, make_ends: Make) -> None:
    first, second = make_ends(), make_ends()
    assert first.look("7") is None
    assert first.is_asking
    assert second.look("7") is None
    assert not second.is_asking, "somebody asks already"
    row = look(first)
    assert row is not None
    assert (row.start, row.end) == (1000, 4600)
    read = second.look("7")
    assert read is not None
    assert read.to_json() == row.to_json()
    assert second.look("8") is None, "a job that the controller does not name"
    assert len(squeue.calls) == 1
    assert f"--user={os.getuid()}" in squeue.calls[0], "for all the user's jobs at once"
    assert [file.name for file in (tmp_path / "job-ends").iterdir()] == ["one"]


def test_another_cluster_has_its_own_answer(
    squeue: Squeue, tmp_path: Path, make_ends: Make
) -> None:
    for cluster in ("one", "../two"):
        assert look(make_ends(cluster)) is not None
    assert len(squeue.calls) == 2
    assert sorted(file.name for file in (tmp_path / "job-ends").iterdir()) == ["---two", "one"]


def test_an_old_answer_is_used_until_there_is_a_new_one(
    squeue: Squeue, tmp_path: Path, make_ends: Make
) -> None:
    ends = make_ends()
    look(ends)
    squeue.answer("7 0 1000 9000 N/A", seconds=0.3)
    time.sleep(FRESH)
    row = ends.look("7")
    assert ends.is_asking
    assert row is not None
    assert row.end == 4600
    until(lambda: (found := ends.look("7")) is not None and found.end == 9000, "the new one")
    assert len(squeue.calls) == 2


@pytest.mark.parametrize("count", [2, 6])
def test_processes_side_by_side_ask_no_more_often_than_one(
    squeue: Squeue, tmp_path: Path, count: int
) -> None:
    agents = [start_agent(tmp_path, 3.0) for _ in range(count)]
    assert [agent.communicate()[0].strip() for agent in agents] == ["4600.0"] * count
    # They start one after another, so that together they look for longer than each.
    assert 2 <= len(squeue.calls) <= (3.0 + 2.0) / FRESH + 1


def test_a_controller_that_answers_with_an_error_is_not_asked_by_all(
    squeue: Squeue, tmp_path: Path, make_ends: Make
) -> None:
    one, two = make_ends(), make_ends()
    look(one)
    squeue.answer("slurm_load_jobs error: Socket timed out", code=1)
    time.sleep(FRESH)
    two.look("7")
    row = look(one)
    assert row is not None, "what was known stays"
    assert row.end == 4600
    two.look("7")
    assert not two.is_asking
    assert len(squeue.calls) == 2


def test_a_controller_that_does_not_answer_is_given_up(
    squeue: Squeue, tmp_path: Path, make_ends: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_ends, "_ASK_SECONDS", 0.3)
    squeue.answer(ROW, seconds=HANGS)
    ends = make_ends()
    began = time.monotonic()
    assert ends.look("7") is None
    until(lambda: ends.look("7") is None and not ends.is_asking, "it gave up")
    assert time.monotonic() - began < 30, "no look waits for squeue"
    other = make_ends()
    other.look("7")
    assert not other.is_asking, "nobody asks at once again"


def test_whoever_asks_is_killed_and_another_one_asks(
    squeue: Squeue, tmp_path: Path, make_ends: Make
) -> None:
    squeue.answer(ROW, seconds=HANGS)
    agent = start_agent(tmp_path, 60.0)
    until(lambda: len(squeue.calls) == 1, "it asks")
    agent.send_signal(signal.SIGKILL)
    agent.communicate()
    os.kill(int(squeue.calls[0].split()[0]), signal.SIGKILL)
    squeue.answer(ROW)
    ends = make_ends()
    ends.look("7")
    assert not ends.is_asking, "as far as it knows, the other one is at it"
    until(lambda: ends.look("7") is not None, "its turn")
    assert len(squeue.calls) == 2
    assert [file.name for file in (tmp_path / "job-ends").iterdir()] == ["one"]


def test_what_the_dead_of_yesterday_left_does_not_keep_anybody(
    squeue: Squeue, tmp_path: Path, make_ends: Make
) -> None:
    (tmp_path / "job-ends").mkdir()
    for number in range(2):
        right = tmp_path / "job-ends" / f"one.1.{number}"
        right.touch()
        os.utime(right, (time.time() - 86400,) * 2)
    ends = make_ends()
    for _ in range(3):
        ends.look("7")
    assert ends.is_asking
    assert look(ends) is not None
    assert [file.name for file in (tmp_path / "job-ends").iterdir()] == ["one"]


def test_an_answer_that_comes_between_reading_and_asking_is_enough(
    squeue: Squeue, tmp_path: Path, make_ends: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, quick = make_ends(), make_ends()
    look(late)
    quick.look("7")
    time.sleep(FRESH)
    look(quick)
    with monkeypatch.context() as patch:
        # As if it had read before the other one asked.
        patch.setattr(late, "_read", lambda _now: None)
        late.look("7")
    assert not late.is_asking
    assert [file.name for file in (tmp_path / "job-ends").iterdir()] == ["one"]
    assert len(squeue.calls) == 2


def test_who_leaves_lets_others_ask_at_once(
    squeue: Squeue, tmp_path: Path, make_ends: Make
) -> None:
    squeue.answer(ROW, seconds=HANGS)
    one, two = make_ends(), make_ends()
    one.look("7")
    one.close()
    squeue.answer(ROW)
    assert look(two) is not None


def test_who_was_taken_for_dead_does_not_replace_the_newer_answer(
    squeue: Squeue, tmp_path: Path, make_ends: Make
) -> None:
    slow, quick = make_ends(), make_ends()
    slow.look("7")
    squeue.answer("7 0 1000 9000 N/A")
    until(lambda: quick.look("7") is not None, "its turn, after the other one's time")
    # Its squeue has answered long ago, and it looks only now.
    slow.look("7")
    (content,) = (json.loads(file.read_text()) for file in (tmp_path / "job-ends").iterdir())
    assert (content["number"], content["jobs"]["7"][2]) == (1, 9000)


@pytest.mark.parametrize("ahead", [-90.0, -30.0, 0.0, 30.0, 90.0])
def test_clocks_of_nodes_and_of_the_file_server_differ(
    squeue: Squeue, tmp_path: Path, make_ends: Make, ahead: float
) -> None:
    """An answer that is fresh, old, or of the future, by up to a minute and a half."""
    look(make_ends())
    moment = time.time() + ahead
    os.utime(tmp_path / "job-ends" / "one", (moment, moment))
    ends = make_ends()
    assert ends.look("7") is not None
    assert not ends.is_asking, "by its own clock it has not seen this answer for long"
    time.sleep(FRESH)
    ends.look("7")
    assert ends.is_asking, "it is old by everybody's clock"


def test_an_answer_of_yesterday_is_old_at_once(
    squeue: Squeue, tmp_path: Path, make_ends: Make
) -> None:
    look(make_ends())
    os.utime(tmp_path / "job-ends" / "one", (time.time() - 86400,) * 2)
    ends = make_ends()
    ends.look("7")
    assert ends.is_asking


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"number": 3, "jobs": {"7": 1}}', "\0"])
def test_a_file_that_makes_no_sense_is_replaced(
    squeue: Squeue, tmp_path: Path, make_ends: Make, content: str
) -> None:
    (tmp_path / "job-ends").mkdir()
    (tmp_path / "job-ends" / "one").write_text(content)
    assert look(make_ends()) is not None


def test_where_nothing_can_be_written_each_asks_once(
    squeue: Squeue, tmp_path: Path, make_ends: Make
) -> None:
    (tmp_path / "job-ends").write_text("a file in its place")
    ends = make_ends()
    assert look(ends) is not None
    time.sleep(FRESH)
    assert ends.look("7") is not None
    assert not ends.is_asking
    assert len(squeue.calls) == 1


def test_no_state_folder_is_made(squeue: Squeue, tmp_path: Path) -> None:
    """Else runyard would take it for somebody else's."""
    ends = JobEnds(str(tmp_path / "state"), "one")
    assert look(ends) is not None
    assert not (tmp_path / "state").exists()


def test_an_agent_sees_a_changed_time_limit_and_that_it_is_pushed_out(
    squeue: Squeue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNYARD_HOME", str(tmp_path))
    now = time.time()
    began = int(now) - 100

    def answer(end: int, preempted: str = "N/A") -> None:
        squeue.answer(f"7 1 {began} {end} {preempted}")

    answer(began + 3600)
    job = this_job({"SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": "1"})
    end = JobEnd(now + 100, now, job=job)
    until(lambda: end.look_again(now) and end.end == began + 3600, "the end by Slurm")
    assert not end.look_again(now), "the same"
    assert end.grace == 120

    answer(began + 900)
    until(lambda: end.look_again(now) and end.end == began + 900, "it was shortened")
    assert end.grace == pytest.approx(80, abs=1), "a tenth of what there is from its beginning"

    answer(began + 160, str(began + 100))
    until(lambda: end.look_again(now) and end.is_pushed_out, "it is pushed out")
    assert end.end == began + 160
    end.close()
    assert end.next_look is None


@pytest.mark.parametrize(
    ("submitted", "said", "is_changed"),
    [(3600, 3600, False), (90, 120, False), (3600, 900, True), (3600, 3660, True)],
)
@pytest.mark.parametrize("ahead", [0, 90])
def test_a_clock_that_is_ahead_is_no_changed_time_limit(
    squeue: Squeue,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ahead: int,
    submitted: int,
    said: int,
    is_changed: bool,
) -> None:
    """Where Slurm sets no variable for the end, an agent counts it until the first answer. Slurm
    rounds limits up to minutes."""
    monkeypatch.setenv("RUNYARD_HOME", str(tmp_path))
    now = time.time()
    start = int(now) - ahead - 5
    squeue.answer(f"7 0 {start} {start + said} N/A")
    job = this_job({"SLURM_JOB_ID": "7"})
    end = JobEnd(now + submitted, now, job=job, limit=submitted)
    until(lambda: end.look_again(now) and end.end == start + said, "the end by Slurm")
    assert end.has_new_limit == is_changed
    squeue.answer(f"7 0 {start} {start + said + 600} N/A")
    until(lambda: end.look_again(now), "somebody gives it more time")
    assert end.has_new_limit
    end.close()


def test_how_often_an_agent_looks(squeue: Squeue, tmp_path: Path) -> None:
    outside = JobEnd(None, 0.0)
    assert outside.next_look is None
    job = this_job({"SLURM_JOB_ID": "7"})
    end = JobEnd(None, 0.0, job=job)
    assert end.next_look == 15
    end.watches_closely = True
    assert end.next_look == 5
