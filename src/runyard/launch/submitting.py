"""Sending a plan: the folder first, then one job or several, as many as the scheduler takes now.

What a submit limit keeps out is *held*: written down in the job folder, and sent by a later command
or by one of the jobs at its end (`held.py`). Trials are bound to agents late, so what has been
taken already works on all of them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.errors import StateError
from runyard.home import write_whole
from runyard.launch.script import Part, script
from runyard.schedulers.errors import SchedulerError
from runyard.schedulers.jobs import Batch, Reply
from runyard.schedulers.protocol import Scheduler

if TYPE_CHECKING:
    from runyard.launch.plan import Plan


class TooMany(SchedulerError):
    """A limit on submitted jobs let nothing in."""


@dataclass(frozen=True)
class SubmittedJob:
    """One job that was taken; `array`: its tasks, such as 1-80."""

    job_id: str
    tasks: int
    array: str | None
    offset: int = 0


@dataclass(frozen=True)
class Submitted:
    """What became of a plan. `left`: what was not taken; `reply`: what was said to the first of it.
    Where that is unknown, this part may have been taken all the same."""

    jobs: tuple[SubmittedJob, ...]
    left: tuple[Part, ...] = ()
    reply: Reply | None = None

    @property
    def why_left(self) -> str | None:
        return None if self.reply is None else self.reply.words

    @property
    def held(self) -> int:
        """How many agents were kept out."""
        return sum(part.count for part in self.left)


def parts_of(plan: Plan, array_size: int) -> list[Part]:
    """The jobs that a plan becomes."""
    chain = plan.chain
    if plan.form != "jobs" and chain is not None and chain.form == "dependency":
        return [Part(chain.lanes, link * chain.lanes) for link in range(chain.links)]
    if plan.form == "nodes":
        return [Part(plan.agents)]
    if plan.form == "jobs":
        return [Part(1, offset) for offset in range(plan.agents)]
    # Schedulers cap the index, not the count, and ours begin at 1.
    most = max(1, array_size - 1)
    return [Part(min(most, plan.agents - offset), offset) for offset in range(0, plan.agents, most)]


@dataclass(frozen=True)
class Sheet:
    """What is sent for each part: the script's text, and what goes with it."""

    job: Path
    """The submission's own folder."""
    name: str
    form: str
    text: Callable[[Part], str]
    pause: float = 0.0
    follows: int = 0
    """In a chain: how many jobs before it is the one that a job waits for."""

    def batch(self, part: Part, after: str | None = None) -> Batch:
        key = key_of(self.job, part)
        return Batch(self.name, self.text(part), key, after, folder=self.job)


def submit(
    plan: Plan,
    *,
    scheduler: Scheduler,
    array_size: int | None = None,
    notice: Callable[[str], None] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Submitted:
    """Make the job folder and send the plan; SchedulerError where nothing of it was taken."""
    write_folder(plan)
    parts = parts_of(plan, array_size or plan.profile.limits.array_size)
    done = Sender(_sheet(plan), scheduler, notice, sleep).send(parts)
    if done.jobs:
        return done
    if done.reply is not None and done.reply.outcome == "unknown" and done.reply.error is not None:
        raise done.reply.error
    raise TooMany(
        f"{scheduler.title} takes no more jobs of yours now",
        said=done.why_left,
        mend="wait until some of them have ended (`runyard status`), then type it again",
    )


def _sheet(plan: Plan) -> Sheet:
    return Sheet(
        job=plan.places.job,
        name=plan.name,
        form=plan.form,
        text=lambda part: script(plan, part),
        pause=plan.profile.limits.pause,
        follows=follows(plan),
    )


def batch_of(plan: Plan, part: Part) -> Batch:
    """What is sent for a part that waits for no other."""
    return _sheet(plan).batch(part)


def try_plan(plan: Plan, part: Part, scheduler: Scheduler) -> str:
    """What is said to a part that is not sent; SchedulerError where it would be refused."""
    reply = scheduler.try_out(batch_of(plan, part))
    if reply.outcome == "refused" and reply.error is not None:
        raise reply.error
    return reply.words


def key_of(job: Path, part: Part) -> str:
    """Names a part among all that were ever sent: the folder is its submission's own."""
    return f"{job}\n{part.offset}+{part.count}"


def follows(plan: Plan) -> int:
    """How many jobs before it is the one that a job of the plan waits for; 0: it waits for none."""
    if plan.chain is None or plan.chain.form == "requeue":
        return 0
    return plan.chain.lanes if plan.form == "jobs" else 1


class Sender:
    """Sends parts one after another, and remembers what was taken.

    `before`: the ids of jobs of this submission that were sent earlier. `may_be_there`: an earlier
    command may have sent the first part, and not have heard of it.
    """

    def __init__(
        self,
        sheet: Sheet,
        scheduler: Scheduler,
        notice: Callable[[str], None] | None = None,
        sleep: Callable[[float], None] = time.sleep,
        before: Sequence[str] = (),
        *,
        may_be_there: bool = False,
    ) -> None:
        self._before = list(before)
        self._may_be_there = may_be_there
        self._sheet = sheet
        self._scheduler = scheduler
        self._notice = notice
        self._sleep = sleep
        self._jobs: list[SubmittedJob] = []
        self._refused: Reply | None = None

    def send(self, parts: Sequence[Part]) -> Submitted:
        """As much as is taken; SchedulerError where the job is said to be wrong."""
        left = list(parts)
        while left:
            part = left[0]
            if self._jobs and self._sheet.pause:
                self._sleep(self._sheet.pause)
            reply = self._send(part)
            if reply.outcome == "taken":
                left.pop(0)
                continue
            if reply.outcome == "full":
                left[:1] = self._send_some(part)
            elif reply.outcome == "refused" and not self._jobs and reply.error is not None:
                raise reply.error
            break
        return Submitted(tuple(self._jobs), tuple(left), self._refused)

    def _send_some(self, part: Part) -> list[Part]:
        """As much of an array as a limit lets in; the rest. Halving finds it in a few questions."""
        offset, left, size = part.offset, part.count, part.count // 2
        while size and left:
            some = Part(min(size, left), offset)
            reply = self._send(some)
            if reply.outcome == "taken":
                offset, left = offset + some.count, left - some.count
            elif reply.outcome == "unknown":
                # It may have been taken: who tries again must look for just this part.
                rest = Part(left - some.count, offset + some.count)
                return [some, rest] if rest.count else [some]
            size //= 2
        return [Part(left, offset)] if left else []

    def _send(self, part: Part) -> Reply:
        sheet = self._sheet
        sent = [*self._before, *(job.job_id for job in self._jobs)]
        after = sent[-sheet.follows] if 0 < sheet.follows <= len(sent) else None
        batch = replace(sheet.batch(part, after), may_be_there=self._may_be_there)
        reply = self._scheduler.submit(batch, notice=self._notice, sleep=self._sleep)
        self._may_be_there = False
        if reply.outcome == "taken":
            array = f"1-{part.count}" if sheet.form == "array" else None
            self._jobs.append(SubmittedJob(reply.job_id, part.count, array, part.offset))
        else:
            self._refused = reply
        return reply


def write_folder(plan: Plan) -> None:
    """The submission's own folder, and that of its logs: without it the job would fail
    and leave no word."""
    with job_folder(plan.places.job) as folder:
        make_closed(plan.logs)
        write_whole(folder / "job.json", json.dumps(plan.job, indent=1) + "\n")
        write_whole(folder / "script.sh", script(plan))


@contextmanager
def job_folder(folder: Path) -> Iterator[Path]:
    """A folder for what belongs to a job, made where it is not there; StateError where it cannot be
    written."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield folder
    except OSError as error:
        raise StateError(
            f"the job's folder {folder} cannot be written",
            said=error.strerror,
            mend="it must be on storage that login and compute nodes share, with room left",
        ) from error


def make_closed(folder: Path) -> None:
    """Make a folder, and those above it, of which others than its group see nothing. One that is
    there already is as its owner wants it."""
    if not folder.is_dir():
        make_closed(folder.parent)
        folder.mkdir(mode=0o770, exist_ok=True)


def with_sweep(plan: Plan, sweep: int) -> Plan:
    """The same plan for a sweep that exists by now."""
    return replace(plan, job={**plan.job, "sweep": sweep})
