"""What an agent is told: by its command line, and by the file of its job."""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from runyard.node.agent.foreign_tracker import ForeignTracker
    from runyard.node.agent.job_end import JobEnd
    from runyard.node.attempt.echo import Show
    from runyard.node.link.cloud import Cloud

# How many programs at a time, and where: `layout` reads them.
PLACE = ("slots", "per-gpu", "gpus", "mps")
# The parent writes this to the control pipe before it exits: keep running without it.
DETACH = b"g"
# Names another server that programs log to, where no job file does.
LOGS_TO = "RUNYARD_LOGS_TO"


def read_job(options: dict[str, str]) -> dict[str, Any]:
    if "job" not in options:
        return {}
    from runyard.node.agent import job_file  # Here: most agents are not in a job of ours.

    return job_file.read_job(options)


def elsewhere(options: dict[str, str]) -> Cloud | None:
    """The sweep at another server, where one is named: ENTITY/PROJECT/SWEEP."""
    if "server" not in options:
        return None
    import json

    from runyard.node.link.cloud import Cloud

    command = json.loads(options["command"]) if "command" in options else None
    return Cloud(options["server"], options["sweep"], command)


def foreign_tracker(job: dict[str, Any], home: str) -> ForeignTracker | None:
    """Where programs log, if not to the server that hands out their trials."""
    logs_to = os.environ.pop(LOGS_TO, None)
    if not (logs_to or job.get("server") or job.get("offline")):
        return None
    import json

    from runyard.node.agent.foreign_tracker import ForeignTracker  # Here: most log to that server.

    server = json.loads(logs_to) if logs_to else job.get("server")
    return ForeignTracker(home, server)


def shown(options: dict[str, str]) -> Show | None:
    if "output" not in options:
        return None
    from runyard.node.attempt.echo import Show  # Here: most agents show nothing.

    return Show(int(options["output"]))


def read_end(options: dict[str, str], job: dict[str, Any]) -> JobEnd:
    """`job`: job.json. Its `limit` is how long the job may take, and with `pushed_out` it may be
    ended for another one."""
    from runyard.node.agent.job_end import JobEnd, find_end
    from runyard.node.system.processes import age_of
    from runyard.schedulers.inside import this_job

    now, here, limit = time.time(), this_job(), job.get("limit")
    requested = now + float(options["time"]) if "time" in options else None
    grace = float(options["grace"]) if "grace" in options else None
    # The script began before its login shell's profile, modules and data.
    age = 0.0 if limit is None else age_of(os.getppid())
    end_time = find_end(requested, here, now, limit, age)
    job_here = here if here.is_job else None
    end = JobEnd(end_time, now, grace, job=job_here, requested=requested, limit=limit)
    end.watches_closely = bool(job.get("pushed_out"))
    return end


def read_options(words: list[str]) -> dict[str, str]:
    """`--name value` pairs: argparse costs more than all that is left of our start."""
    known = (
        "sweep", *PLACE, "count", "folder", "time", "grace", "control", "output", "quiet", "job",
        "ended", "server", "command",
    )  # fmt: skip
    options: dict[str, str] = {}
    left = list(words)
    while left:
        name = left.pop(0).removeprefix("--")
        if name not in known or (name != "quiet" and not left):
            sys.exit(f"runyard.node.agent: it takes --{' --'.join(known)}, not {name!r}")
        options[name] = "" if name == "quiet" else left.pop(0)
    if "sweep" not in options and "job" not in options:
        sys.exit("runyard.node.agent: which sweep? --sweep KEY")
    return options
