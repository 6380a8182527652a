"""What an agent in a job is told by the file beside the job's script, and how it tells its end."""

from __future__ import annotations

import contextlib
import json
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from runyard.node.work import Work

_OPTIONS = ("sweep", "slots", "per_gpu", "gpus", "mps", "count", "folder", "grace")


def read_job(options: dict[str, str]) -> dict[str, Any]:
    """job.json. What it says of the agent's options is put to them, unless it was written there."""
    try:
        with open(options["job"], encoding="utf-8") as file:  # noqa: PTH123
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


def write_end(path: str, code: int) -> None:
    """For the job's script: a shell whose waiting was interrupted by a signal may lose the code."""
    with contextlib.suppress(OSError), open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(f"{code}\n")
