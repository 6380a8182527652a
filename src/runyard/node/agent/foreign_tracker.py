"""Trials whose programs do not log to the server that hands them out.

Because their nodes do not let them: they record into files. Or because the user wants them at
another server, W&B's cloud say: they log there. Either way what the client writes on disk lies in
the state folder, beside a note of whose run it is, and is brought in when the agent ends, or by
`runyard sync`.
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
# What a client would take for our server's, or ask another one for in vain.
_OURS = ("WANDB_APP_URL", "WANDB_ENTITY", "WANDB_SWEEP_ID")


class ForeignTracker:
    """Where programs log instead. `server`: its url, the folder of the project, in which a file of
    keys may lie, and the entity, project and account, as far as they are named."""

    def __init__(self, home: str, server: dict[str, str] | None = None) -> None:
        self._home = home
        self._server = server
        self._key = "" if server is None else _find_key(server)

    def record(self, claim: dict[str, Any]) -> dict[str, str]:
        """What makes a trial's client write where it is found; a note says so before it begins."""
        run = claim["run"]
        folder = Path(self._home) / "runs" / str(run["id"])
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        note = Owed(
            run=str(run["id"]),
            project=run["project"],
            entity=run["entity"],
            host=socket.gethostname(),
            pid=os.getpid(),
            online=self._server is not None,
            elsewhere=self._server is not None,
        )
        write_owed(folder, note)
        written = {"WANDB_DIR": str(folder)}
        return written if self._server is not None else {**written, "WANDB_MODE": "offline"}

    def redirect(self, environ: dict[str, str], claim: dict[str, Any]) -> None:
        """Let a program log to the other server, if there is one: the same run, by the same id."""
        if self._server is None:
            return
        for name in _OURS:
            environ.pop(name, None)
        environ |= {
            "WANDB_BASE_URL": self._server["url"],
            "WANDB_API_KEY": self._key,
            "WANDB_PROJECT": self._server.get("project") or claim["run"]["project"],
            # It has no sweep there; this is what keeps its trials together.
            "WANDB_RUN_GROUP": environ.get("WANDB_RUN_GROUP") or str(claim["sweep"]),
        }
        if self._server.get("entity"):
            environ["WANDB_ENTITY"] = self._server["entity"]

    def bring_in(self, runs: Iterable[str]) -> None:
        """Say that these are over, and let `runyard sync` send them."""
        known = list(runs)
        for run in known:
            folder = Path(self._home) / "runs" / run
            note = read_owed(folder)
            if note is not None:
                write_owed(folder, note.ended(time.time()))
        if not known:
            return
        try:
            subprocess.run(
                [sys.executable, "-m", "runyard", "sync", "--quiet", *known],
                env={**os.environ, "RUNYARD_HOME": self._home},
                stdin=subprocess.DEVNULL, timeout=_SYNC_SECONDS, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            print(f"runyard: what was logged is not in yet ({error}): `runyard sync`", flush=True)


def _find_key(server: dict[str, str]) -> str:
    from runyard.client.keys import find_key
    from runyard.errors import RunyardError

    try:
        return find_key(
            server["url"], os.environ, Path(server["folder"]), server.get("account")
        ).key
    except RunyardError as error:
        sys.exit(f"runyard: on {socket.gethostname()} {error.what}\n  try:  {error.mend}")
