"""Agents that the cluster's limits kept out, sent when there is room.

A submission that was not taken whole leaves a file in `held/` of the state folder. Commands that
look at sweeps, and jobs at their end, send what they find there; nothing waits on a terminal.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard.home import write_whole
from runyard.launch.script import Part, renumber
from runyard.launch.script_agents import held_file
from runyard.launch.submitting import Sender, Sheet, Submitted, follows
from runyard.locks import FolderLock
from runyard.schedulers.errors import SchedulerError
from runyard.schedulers.protocol import POLL_SECONDS, Scheduler

if TYPE_CHECKING:
    from runyard.launch.plan import Plan


def hold(plan: Plan, done: Submitted, sweep: int, record: Mapping[str, Any]) -> None:
    """Write down what is left to send; `record` is what the server is told of a job of it."""
    file = held_file(plan.places.home, plan.places.job)
    file.parent.mkdir(mode=0o700, exist_ok=True)
    _write(
        file,
        {
            "job": str(plan.places.job),
            "name": plan.name,
            "form": plan.form,
            "pause": plan.profile.limits.pause,
            "follows": follows(plan),
            "before": [job.job_id for job in done.jobs],
            "sweep": sweep,
            "record": dict(record),
        },
        done.left,
    )


def send_held(
    home: Path,
    scheduler: Scheduler,
    is_wanted: Callable[[int], bool],
    taken: Callable[[Mapping[str, Any], Submitted], None],
    *,
    patience: float = 0.0,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Send what there is room for; how many agents were taken.

    `is_wanted` says of a sweep whether there is still work in it; `taken` hears of each submission.
    `patience`: how long to wait for room. A job that sends at its end counts itself until it is
    gone; where several end at once, one stays and waits for the others to leave.
    """
    total = 0
    for file in _files(home):
        # One sends at a time, from whichever machine; the others have nothing to do then.
        with FolderLock(file.with_suffix(".lock")) as lock:
            end = time.monotonic() + patience
            if lock.acquire():
                sent = _send(file, scheduler, is_wanted, taken)
                while not sent and file.exists() and time.monotonic() < end:
                    sleep(POLL_SECONDS)
                    sent = _send(file, scheduler, is_wanted, taken)
                total += sent
            if not file.exists():
                file.with_suffix(".lock").unlink(missing_ok=True)
    return total


def count_held(home: Path) -> dict[int, int]:
    """Agents that wait to be sent, by the key of their sweep."""
    slots: dict[int, int] = {}
    for file in _files(home):
        with contextlib.suppress(OSError, ValueError, KeyError):
            content = json.loads(file.read_text())
            slots[content["sweep"]] = slots.get(content["sweep"], 0) + sum(
                part["count"] for part in content["parts"]
            )
    return slots


def _files(home: Path) -> list[Path]:
    try:
        return sorted(file for file in (home / "held").iterdir() if file.suffix == ".json")
    except OSError:
        return []


def _send(
    file: Path,
    scheduler: Scheduler,
    is_wanted: Callable[[int], bool],
    taken: Callable[[Mapping[str, Any], Submitted], None],
) -> int:
    try:
        content = json.loads(file.read_text())
        job = Path(content["job"])
        text = (job / "script.sh").read_text(encoding="utf-8")
        parts = [Part(part["count"], part["offset"]) for part in content["parts"]]
        wanted = is_wanted(content["sweep"])
    except (OSError, ValueError, KeyError):  # Its folder is gone, or somebody else has sent it.
        file.unlink(missing_ok=True)
        return 0
    if not wanted or not parts:
        file.unlink(missing_ok=True)
        return 0
    sheet = Sheet(
        job=job,
        name=content["name"],
        form=content["form"],
        text=lambda part: renumber(text, part, scheduler),
        pause=content["pause"],
        follows=content["follows"],
    )
    try:
        # Whoever tried last may not have heard that the first part was taken.
        sender = Sender(sheet, scheduler, before=content["before"], may_be_there=True)
        done = sender.send(parts)
    except SchedulerError:  # It is wrong by now, as it seems. Whoever comes next tries again.
        return 0
    if done.jobs:
        taken(content["record"], done)
    if done.left:
        content["before"] += [job.job_id for job in done.jobs]
        _write(file, content, done.left)
    else:
        file.unlink(missing_ok=True)
    return sum(job.tasks for job in done.jobs)


def _write(file: Path, content: Mapping[str, Any], left: tuple[Part, ...]) -> None:
    parts = [{"count": part.count, "offset": part.offset} for part in left]
    write_whole(file, json.dumps({**content, "parts": parts}) + "\n")
