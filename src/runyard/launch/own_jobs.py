"""Small jobs of runyard's own: the server, the building of an environment. No trials run in them.

What a site demands and forbids holds for them as for any job; the script is as readable.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.config.check import check
from runyard.errors import StateError
from runyard.home import write_whole
from runyard.launch.script import is_plain
from runyard.launch.shell_words import expandable, module_lines, quote
from runyard.schedulers.errors import SchedulerSilent
from runyard.schedulers.resources import follow_rules
from runyard.schedulers.slurm.commands import refused
from runyard.schedulers.slurm.header import header
from runyard.schedulers.slurm.sending import mark_of, send
from runyard.schedulers.slurm.variables import own_environment
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
    options: tuple[str, ...] = ()
    """Of sbatch, besides those that the site wants."""
    modules: tuple[str, ...] = ()


def own_script(job: OwnJob, request: Request, folder: Path) -> str:
    """The text that is sent to sbatch."""
    profile = request.profile
    asked = replace(
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
    small = check(replace(request, resources=asked)).accepted()
    ruled = follow_rules(small, profile)
    options = header(job.name, small, profile, ruled, form="jobs", agents=1, grace=0).lines()
    log = f"{folder}/%j.log" if is_plain(folder) else "/dev/null"
    shell = profile.script
    login = " -l" if shell.login_shell and " " not in shell.interpreter else ""
    named = [f'export {name}="{expandable(value)}"' for name, value in shell.variables.items()]
    parts = [
        f"#!{shell.interpreter}{login}",
        *(f"#SBATCH {one}" for one in (*options, *job.options, f"--output={log}")),
        "",
        f"# Made by runyard {__version__}: {job.about}.",
        *([] if is_plain(folder) else [f'exec >>{quote(folder)}/"$SLURM_JOB_ID.log" 2>&1']),
        *([f'PATH={quote(":".join(shell.path))}:"$PATH"'] if shell.path else []),
        *module_lines((*shell.modules, *job.modules)),
        *named,
        *job.lines,
    ]
    return "\n".join(parts) + "\n"


def submit_own(
    text: str,
    folder: Path,
    *,
    environ: Mapping[str, str],
    more: tuple[str, ...] = (),
    notice: Callable[[str], None] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Send a script; the job's id. `more` are options that change from job to job."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(folder / "script.sh", text)
    except OSError as error:
        raise StateError(
            f"the job's folder {folder} cannot be written",
            said=error.strerror,
            mend="it must be on storage that login and compute nodes share, with room left",
        ) from error
    clean = own_environment(environ)
    key = f"{folder}\n{secrets.token_hex(8)}"
    answer = send(text, key, options=more, environ=clean, notice=notice, sleep=sleep)
    if answer.is_busy:
        raise SchedulerSilent(
            "nobody knows whether Slurm took the job",
            said=answer.words,
            mend=f"`squeue --me --format='%A %k' | grep {mark_of(key)}` shows it when Slurm is "
            "back: cancel it with scancel, then type the same once more",
        )
    if not answer.is_good:
        raise refused("Slurm does not take the job", answer, f"it was sent {folder}/script.sh")
    return answer.said


def allowed_length(seconds: float, request: Request) -> float:
    """As long as is wanted, or as the site lets a job be."""
    limit = request.profile.limit(request.resources.partition, request.resources.qos)
    longest = limit.longest if limit.longest is not None else seconds
    return max(limit.shortest or 0.0, min(seconds, longest))
