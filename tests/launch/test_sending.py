"""Agents and jobs of our own are sent once, whatever a controller does to its answers.

The controller is a model: a real one cannot be made to lose an answer at a chosen moment. (One that
is stopped for a while is in tests/slurm/test_lost_answers.py.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runyard.launch.own_jobs import submit_own
from runyard.launch.script import Part
from runyard.launch.submitting import Sender, Sheet
from runyard.schedulers.errors import SchedulerError
from runyard.schedulers.slurm import sending
from runyard.schedulers.slurm.commands import Answer
from runyard.schedulers.slurm.scheduler import Slurm

LOST = Answer(1, "", "sbatch: error: Batch job submission failed: Socket timed out on send/recv")
LIMIT = Answer(1, "", "sbatch: error: AssocMaxSubmitJobLimit")
JOB = Path("/home/kim/.runyard/jobs/20261115-093000-abcdef")
# What becomes of one command: it is answered; the answer or the question is lost; or the question
# comes through late, before the next command is served or just after it.
FATES = ("answered", "answer lost", "question lost", "late", "very late")


@dataclass
class Controller:
    """Slurm's controller, as far as sbatch, squeue, sacct and scancel go."""

    fates: list[str]
    room: int = 10**6
    forgets: bool = False
    """Whether jobs leave the queue at once, so that accounting alone knows them."""
    jobs: dict[int, tuple[str, Part]] = field(default_factory=dict)
    cancelled: set[int] = field(default_factory=set)
    late: list[tuple[int, Callable[[], object]]] = field(default_factory=list)
    served: int = 0

    def ask(self, words: Sequence[str], stdin: str = "", **_: Any) -> Answer:
        # The real `ask` repeats scancel until it is answered.
        may_fail = self.fates and words[0] != "scancel"
        fate = self.fates.pop(0) if may_fail else "answered"
        if fate == "question lost":
            return LOST
        if fate in ("late", "very late"):
            due = self.served + (fate == "very late")
            self.late.append((due, lambda: self._serve(words, stdin)))
            return LOST
        for due, request in list(self.late):
            if due <= self.served:
                self.late.remove((due, request))
                request()
        self.served += 1
        answer = self._serve(words, stdin)
        return answer if fate == "answered" else LOST

    def _serve(self, words: Sequence[str], stdin: str) -> Answer:
        if words[0] == "scancel":
            self.cancelled |= set(map(int, words[1:]))
        if words[0] == "sbatch":
            count, offset = map(int, re.findall(r"\d+", stdin)[:2])
            if sum(part.count for part in self.alive.values()) + count > self.room:
                return LIMIT
            mark = next(word for word in words if word.startswith("--comment=")).partition("=")[2]
            self.jobs[len(self.jobs) + 1] = (mark, Part(count, offset))
            return Answer(0, f"{len(self.jobs)}\n", "")
        known = words[0] == ("sacct" if self.forgets else "squeue")
        lines = [f"{key}|{mark}|name" for key, (mark, _) in self.jobs.items() if known]
        return Answer(0, "\n".join(lines), "")

    @property
    def alive(self) -> dict[int, Part]:
        return {key: part for key, (_, part) in self.jobs.items() if key not in self.cancelled}


def sheet() -> Sheet:
    return Sheet(JOB, "sweep-cats", "array", lambda part: f"{part.count} {part.offset}")


def send_all(
    controller: Controller, parts: Sequence[Part], environ: Mapping[str, str]
) -> tuple[list[tuple[int, Part]], list[Part]]:
    """As `submit`, `hold` and `send_held` do: what was told of jobs, and what is left."""
    told: list[tuple[int, Part]] = []
    left, is_first = list(parts), True
    for _ in range(20):
        sender = Sender(
            sheet(), Slurm(environ), sleep=lambda _s: None, before=[str(key) for key, _ in told],
            may_be_there=not is_first,
        )  # fmt: skip
        was_calm = not controller.fates
        done = sender.send(left)
        told += [(int(job.job_id), Part(job.tasks, job.offset)) for job in done.jobs]
        left, is_first = list(done.left), False
        if not left or was_calm:
            break
    return told, left


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    fates=st.lists(st.sampled_from(FATES), max_size=60),
    counts=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    room=st.one_of(st.just(10**6), st.integers(0, 12)),
    forgets=st.booleans(),
)
def test_every_agent_is_sent_once_and_told(
    monkeypatch: pytest.MonkeyPatch, fates: list[str], counts: list[int], room: int, forgets: bool
) -> None:
    controller = Controller(list(fates), room, forgets)
    monkeypatch.setattr(sending, "ask", controller.ask)
    parts = [Part(count, sum(counts[:place])) for place, count in enumerate(counts)]
    told, left = send_all(controller, parts, {})
    assert dict(told) == controller.alive
    assert len(told) == len(controller.alive)
    agents = [agent for _, part in told for agent in _agents(part)]
    waiting = [agent for part in left for agent in _agents(part)]
    assert sorted(agents + waiting) == list(range(sum(counts)))
    assert not left or room < sum(counts)


def _agents(part: Part) -> range:
    return range(part.offset, part.offset + part.count)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40
)
@given(fates=st.lists(st.sampled_from(FATES), max_size=40), links=st.integers(1, 4))
def test_every_job_of_our_own_is_sent_once_and_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fates: list[str], links: int
) -> None:
    controller = Controller(list(fates))
    monkeypatch.setattr(sending, "ask", controller.ask)
    ids = []
    for _ in range(links):
        try:
            ids.append(int(submit_own("1 0", tmp_path, Slurm({}), sleep=lambda _s: None)))
        except SchedulerError:  # Whoever typed it is told, and looks.
            return
    assert ids == list(controller.alive)


def test_an_old_job_of_the_same_folder_is_not_the_part_that_was_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    controller = Controller([])
    monkeypatch.setattr(sending, "ask", controller.ask)
    Sender(sheet(), Slurm({})).send([Part(4)])
    controller.fates = ["question lost", "answered", "answered", "answered"]
    done = Sender(sheet(), Slurm({}), sleep=lambda _s: None, before=["1"]).send([Part(50, 4)])
    assert [(job.job_id, job.tasks) for job in done.jobs] == [("2", 50)]
    assert controller.alive == {1: Part(4), 2: Part(50, 4)}


def test_a_controller_that_stays_silent_is_told_and_nothing_is_sent_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    controller = Controller(["late", *["question lost"] * 100])
    monkeypatch.setattr(sending, "ask", controller.ask)
    with pytest.raises(SchedulerError, match="nobody knows whether Slurm took the job") as error:
        submit_own("1 0", tmp_path, Slurm({}), sleep=lambda _s: None)
    assert sending.mark_of("").partition(":")[0] in str(error.value.mend)
    assert len(controller.late) == 1


def test_a_comment_of_the_users_own_stays_and_the_name_carries_the_mark() -> None:
    text = "#!/bin/sh\n#SBATCH --job-name=sweep-cats\n#SBATCH --comment=48:00:00\n"
    assert sending._carrier(text, "runyard:1") == ["--job-name=sweep-cats.runyard:1"]
