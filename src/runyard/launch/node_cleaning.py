"""What dead jobs left on the disks of a partition's nodes: a short job to each of them removes it.

Folders of jobs that live are held, and stay.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.launch.own_jobs import OwnJob, own_script, submit_own
from runyard.launch.script import local_base
from runyard.launch.shell_words import quote
from runyard.schedulers.choice import cluster
from runyard.schedulers.protocol import POLL_SECONDS

if TYPE_CHECKING:
    from runyard.config.request import Request
    from runyard.launch.plan import Interpreter

_JOB_SECONDS = 300.0
# What a job said is in a file; how it stands costs the scheduler's time.
_LOOK_EVERY = 1.0
_LOOKS_A_POLL = math.ceil(POLL_SECONDS / _LOOK_EVERY)


@dataclass(frozen=True)
class Cleaned:
    """What a node said of its folders: `before`, `after`, and those `held` by jobs that live.

    None where its job has not run in the time that there was.
    """

    node: str
    job: str
    said: dict[str, list[str]] | None

    def in_words(self) -> str:
        """What became of a node's left-overs."""
        if self.said is None:
            return (
                f"{self.node}: it had no room for the job in that time; its next job removes them"
            )
        held = f"; {len(self.said['held'])} of jobs that run stay" if self.said["held"] else ""
        if not self.said["before"]:
            return f"{self.node}: nothing to delete{held}"
        before, after = (" ".join(self.said[when]) for when in ("before", "after"))
        return f"{self.node}: before {before}; after {after or 'nothing'}{held}"


def clean_nodes(
    request: Request,
    runyard: Interpreter,
    nodes: Sequence[str],
    folder: Path,
    *,
    environ: Mapping[str, str],
    dry_run: bool,
    seconds: float,
    sleep: Callable[[float], None] = time.sleep,
) -> list[Cleaned]:
    """Send the jobs and wait for what they say."""
    words = " ".join(quote(word) for word in runyard.words("data.cleaning"))
    job = OwnJob(
        name="runyard-clean",
        about="removes what dead jobs left on this node's disk",
        lines=(f'exec {words} "{local_base(request.profile)}"{" dry" if dry_run else ""}',),
        cpus=1,
        memory=100,
        seconds=_JOB_SECONDS,
    )
    scheduler = cluster(environ)
    text = own_script(job, request, folder, scheduler)
    sent = {submit_own(text, folder, scheduler, node=node): node for node in nodes}
    end = time.monotonic() + seconds
    waiting = set(sent)
    for look in itertools.count(1):
        if not waiting or time.monotonic() >= end:
            break
        sleep(_LOOK_EVERY)
        waiting = {job_id for job_id in waiting if _said(folder / f"{job_id}.log") is None}
        if waiting and look % _LOOKS_A_POLL == 0:
            states = scheduler.poll(sorted(waiting))
            waiting = {job_id for job_id in waiting if states[job_id].is_open}
    scheduler.cancel(waiting)
    return [Cleaned(node, job_id, _said(folder / f"{job_id}.log")) for job_id, node in sent.items()]


def _said(log: Path) -> dict[str, list[str]] | None:
    """The job's own line; a login shell may have said something before it."""
    try:
        lines = log.read_text().splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        try:
            content: dict[str, list[str]] = json.loads(line)
        except ValueError:
            continue
        return content
    return None
