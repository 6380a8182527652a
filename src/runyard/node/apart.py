"""Trials whose programs log to files, because their nodes do not let them log to the server.

The agent is given its trials by the server as ever; what programs log lies in the state folder,
beside a note of whose run it is, and is brought in when the agent ends, or by `runyard sync`.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from runyard.client.owed import Owed, read_owed, write_owed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

# A job that is about to end has no more than this; what is not in by then, the next sync brings in.
_SYNC_SECONDS = 240.0


def recording(home: str, told: dict[str, Any]) -> dict[str, str]:
    """What makes a trial's client record; a note says so before it begins."""
    run = told["run"]
    folder = Path(home) / "runs" / str(run["id"])
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    note = Owed(
        run=str(run["id"]),
        project=run["project"],
        entity=run["entity"],
        host=socket.gethostname(),
        pid=os.getpid(),
    )
    write_owed(folder, note)
    return {"WANDB_MODE": "offline", "WANDB_DIR": str(folder)}


def bring_in(home: str, runs: Iterable[str]) -> None:
    """Say that these are over, and let `runyard sync` send them."""
    known = list(runs)
    for run in known:
        folder = Path(home) / "runs" / run
        note = read_owed(folder)
        if note is not None:
            write_owed(folder, note.ended(time.time()))
    if not known:
        return
    try:
        subprocess.run(
            [sys.executable, "-m", "runyard", "sync", "--quiet", *known],
            env={**os.environ, "RUNYARD_HOME": home},
            stdin=subprocess.DEVNULL, timeout=_SYNC_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"runyard: what was logged is not in yet ({error}): `runyard sync`", flush=True)
