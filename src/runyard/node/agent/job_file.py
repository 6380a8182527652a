"""An agent's job: which it is, what the file beside its script says, how its end is told."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys

from runyard.schedulers.inside import this_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from runyard.node.agent.work import Work

_OPTIONS = ("sweep", "slots", "per_gpu", "gpus", "mps", "count", "folder", "grace")


def read_job(options: dict[str, str]) -> dict[str, Any]:
    """job.json. What it says of the agent's options is put to them, unless it was written there."""
    try:
        with open(options["job"], encoding="utf-8") as file:
            job: dict[str, Any] = json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"runyard: {options['job']} cannot be read on {socket.gethostname()}: {error}")
    for name in _OPTIONS:
        if job.get(name) is not None:
            options.setdefault(name.replace("_", "-"), str(job[name]))
    return job


def exit_code(work: Work) -> int:
    """That of the one trial, if it failed; 1 where some of several did."""
    if not work.failures:
        return 0
    code = work.failures[0] if len(work.taken) == 1 else 1
    return code if code > 0 else 128 - code


def write_end(path: str, code: int, *, leaves_work: bool, stays: float = 0.0) -> None:
    """For the job's script: a shell whose waiting was interrupted by a signal may lose the code.

    `leaves_work`: it ends because its job does, and another could go on. `stays`: for how many
    seconds the script waits to be ended, after it has cleaned up.
    """
    left = f" stays {stays:.0f}" if stays else " left" if leaves_work else ""
    with contextlib.suppress(OSError), open(path, "w", encoding="utf-8") as file:
        file.write(f"{code}{left}\n")


def cancel_links(job_file: str, report: Callable[[str], None]) -> None:
    """Take the links of this chain out of the queue that have not begun: they have job.json's
    folder for theirs. Where the scheduler does not let us, each of them ends by itself when it
    begins."""
    import subprocess  # Only here, and in few jobs.

    folder = os.path.dirname(os.path.abspath(job_file))
    # Agents side by side come to it at the same time: one of them asks the scheduler.
    mark = f"{folder}/links-cancelled"
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return
    except OSError:
        pass
    try:
        if this_job().cancel_waiting(folder):
            report("the links of this chain that have not begun are cancelled")
    except (OSError, subprocess.SubprocessError) as error:
        with contextlib.suppress(OSError):
            os.unlink(mark)
        report(f"the links of this chain that have not begun could not be cancelled: {error}")
