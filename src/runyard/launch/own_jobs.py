"""Small jobs of runyard's own: the server, the building of an environment. No trials run in them.

What a site demands and forbids holds for them as for any job; the script is as readable.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.config.check import check
from runyard.home import write_whole
from runyard.launch.script import header_section
from runyard.launch.shell_words import expandable, module_lines, quote
from runyard.launch.submitting import job_folder
from runyard.schedulers.errors import SchedulerError, SchedulerSilent
from runyard.schedulers.header_request import HeaderRequest, ScriptPlace
from runyard.schedulers.jobs import Batch
from runyard.schedulers.protocol import Scheduler
from runyard.schedulers.resources import follow_rules
from runyard.version import __version__

if TYPE_CHECKING:
    from runyard.config.request import Request


@dataclass(frozen=True)
class OwnJob:
    """One job: what it is for, what it runs, and what it needs."""

    name: str
    about: str
    lines: tuple[str, ...]
    """Of shell; the last one is what the job is."""
    cpus: int
    memory: int | None
    """MiB; None: what the site gives to a job that asks for none."""
    seconds: float
    farewell: float = 0.0
    """How long before its end it is told by TERM; 0: not at all."""
    modules: tuple[str, ...] = ()


def own_script(job: OwnJob, request: Request, folder: Path, scheduler: Scheduler) -> str:
    """The text that is sent to the scheduler."""
    profile, words = request.profile, scheduler.words
    resources = replace(
        request.resources,
        gpus=0,
        gpu_type=None,
        cpus=job.cpus,
        memory=job.memory,
        memory_per_gpu=None,
        time=allowed_length(job.seconds, request),
        nodes=1,
        tasks_per_node=1,
        mail=(),
    )
    small = check(replace(request, resources=resources)).accepted()
    ruled = follow_rules(small, profile)
    header = scheduler.header(
        HeaderRequest(
            job.name, small, profile, ruled, form="jobs", grace=job.farewell, signal="TERM"
        )
    )
    has_log, shell = words.is_plain(folder), profile.script
    lines = scheduler.header_lines(header, ScriptPlace(f"{folder}/%j.log" if has_log else None))
    named = [f'export {name}="{expandable(value)}"' for name, value in shell.variables.items()]
    parts = [
        *header_section(lines, profile),
        "",
        f"# Made by runyard {__version__}: {job.about}.",
        *([] if has_log else [f'exec >>{quote(folder)}/"${words.job}.log" 2>&1']),
        *([f'PATH={quote(":".join(shell.path))}:"$PATH"'] if shell.path else []),
        *module_lines((*shell.modules, *job.modules)),
        *named,
        *job.lines,
    ]
    return "\n".join(parts) + "\n"


def submit_own(
    text: str,
    folder: Path,
    scheduler: Scheduler,
    *,
    after: str | None = None,
    minutes: int | None = None,
    node: str | None = None,
    notice: Callable[[str], None] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Send a script; the job's id. `Batch` says what the options are."""
    with job_folder(folder):
        write_whole(folder / "script.sh", text)
    key = f"{folder}\n{secrets.token_hex(8)}"
    batch = Batch(folder.name, text, key, after, minutes, node=node)
    reply = scheduler.submit(batch, notice=notice, sleep=sleep)
    if reply.outcome == "unknown":
        raise SchedulerSilent(
            f"nobody knows whether {scheduler.title} took the job",
            said=reply.words,
            mend=reply.search or None,
        )
    if reply.outcome != "taken":
        raise SchedulerError(
            f"{scheduler.title} does not take the job",
            said=reply.words,
            mend=f"it was sent {folder}/script.sh",
        )
    return reply.job_id


def allowed_length(seconds: float, request: Request) -> float:
    """As long as is wanted, or as the site lets a job be."""
    limit = request.profile.limit(request.resources.partition, request.resources.qos)
    longest = limit.longest if limit.longest is not None else seconds
    return max(limit.shortest or 0.0, min(seconds, longest))
