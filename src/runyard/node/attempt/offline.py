"""An attempt on a machine that cannot reach the server: recorded on disk, brought in later.

The console and a record go to the spool, from where a server takes them in; what the wandb client
records lies in the run's folder, beside a note for `runyard sync`.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from runyard.client.api import NewRun
from runyard.client.owed import Owed, write_owed
from runyard.home import write_whole
from runyard.node.attempt.console import Console
from runyard.node.attempt.foreground import Program, deaf_threads
from runyard.node.attempt.run_attempt import Outcome


def offline_environment(new: NewRun, folder: Path) -> dict[str, str]:
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
    program: Program, new: NewRun, spool: Path, folder: Path, environment: Mapping[str, str]
) -> Outcome:
    """Run the program to its end, with no server."""
    token, host = secrets.token_hex(4), socket.gethostname()
    copy, record = spool / f"{new['id']}-{token}.log", spool / f"{new['id']}-{token}.json"
    known = {"new": new, "token": token, "host": host, "pid": os.getpid(), "begun_at": time.time()}
    owed = Owed(
        run=new["id"],
        project=new["project"],
        entity=new.get("entity"),
        host=host,
        pid=os.getpid(),
        python=find_interpreter(new["command"], environment),
    )
    console = Console(copy)
    stdout, stderr = console.open()
    try:
        # Before the program: whatever becomes of us, it is known that there is something to fetch.
        write_whole(record, json.dumps(known))
        write_owed(folder, owed)
        program.start(environment, stdout, stderr)
    except BaseException:
        console.abandon()
        record.unlink(missing_ok=True)
        raise
    started = time.monotonic()
    with deaf_threads():
        console.start(program.tell_resized)
    exit_code = program.wait()
    seconds, ended_at = time.monotonic() - started, time.time()
    with contextlib.suppress(KeyboardInterrupt):
        program.give_up_signals()
        console.finish()
    program.forget_grace()
    with contextlib.suppress(OSError):  # A full disk: the server counts it as lost.
        write_whole(record, json.dumps({**known, "exit_code": exit_code, "ended_at": ended_at}))
        write_owed(folder, owed.ended(ended_at))
    return Outcome(exit_code, seconds, None, None, console.trouble)


def find_interpreter(command: list[str], environment: Mapping[str, str]) -> str | None:
    """The Python that runs a command, as far as the command shows it."""
    found = shutil.which(command[0], path=environment.get("PATH"))
    if found is None:
        return None
    if Path(found).name.startswith("python"):
        return found
    with contextlib.suppress(OSError), Path(found).open("rb") as file:
        if file.read(2) == b"#!":
            words = file.readline(1000).decode(errors="replace").split()
            if words[:1] and words[0].endswith("/env"):
                words = words[1:]
            if words and Path(words[0]).name.startswith("python"):
                return shutil.which(words[0], path=environment.get("PATH"))
    return None
