"""An attempt on a machine that cannot reach the server: recorded on disk, brought in later.

The console and a record go to the spool, from where a server takes them in; what the wandb client
records lies in the run's folder, beside a note for `runyard sync`.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from runyard.client.owed import Owed, write_owed
from runyard.node.attempt.foreground import Program
from runyard.node.attempt.records import Record
from runyard.node.attempt.run_attempt import Outcome, run_attempt
from runyard.shapes.runs import NewRun


def offline_variables(new: NewRun, folder: Path) -> dict[str, str]:
    """What makes a client record into `folder` instead of asking for a server."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    settings = {
        "WANDB_MODE": "offline",
        "WANDB_DIR": str(folder),
        "WANDB_RUN_ID": new["id"],
        "WANDB_PROJECT": new["project"],
        "RUNYARD_ATTEMPT": "1",
    }
    if new.get("entity"):
        settings["WANDB_ENTITY"] = str(new["entity"])
    return settings


def run_offline(
    program: Program, new: NewRun, spool: Path, folder: Path, environ: Mapping[str, str]
) -> Outcome:
    """Run the program to its end, with no server."""
    token, host = secrets.token_hex(4), socket.gethostname()
    record = Record(
        f"{spool}/{new['id']}-{token}.json",
        {"new": new, "token": token, "host": host, "pid": os.getpid(), "begun_at": time.time()},
        survives_machine=True,
    )
    owed = Owed(
        run=new["id"],
        project=new["project"],
        entity=new.get("entity"),
        host=host,
        pid=os.getpid(),
        python=find_interpreter(new["command"], environ),
    )
    # Before the program: whatever becomes of us, it is known that there is something to fetch.
    write_owed(folder, owed)
    outcome = run_attempt(program, record, environ, None)
    with contextlib.suppress(OSError):  # A full disk: the server counts it as lost.
        write_owed(folder, owed.ended(float(record.content["ended_at"])))
    return outcome


def find_interpreter(command: list[str], environ: Mapping[str, str]) -> str | None:
    """The Python that runs a command, as far as the command shows it: the whole path, for commands
    that are called from other folders."""
    program = shutil.which(command[0], path=environ.get("PATH"))
    if program is None:
        return None
    program = os.path.abspath(program)  # Not resolved: an environment's Python is a link.
    if Path(program).name.startswith("python"):
        return program
    with contextlib.suppress(OSError), Path(program).open("rb") as file:
        if file.read(2) == b"#!":
            words = file.readline(1000).decode(errors="replace").split()
            if words[:1] and words[0].endswith("/env"):
                words = words[1:]
            if words and Path(words[0]).name.startswith("python"):
                return shutil.which(words[0], path=environ.get("PATH"))
    return None
