"""The server of this state folder, for every action that needs it."""

from __future__ import annotations

import os
import subprocess
import sys

from runyard.actions.events import Notice, Notify
from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.errors import RunyardError
from runyard.home import Home, locate


def open_server(
    notify: Notify, home: Home | None = None, *, quiet: bool = False, sync: bool = True
) -> Api:
    """The running server; starts it, and says so, where none runs."""
    home = home or locate()
    server = ensure_server(home)
    if server.started and not quiet:
        notify(Notice(f"started the server at {server.api.url} (state in {home.path})"))
    if server.note:
        notify(Notice(server.note))
    if server.started and sync:
        sync_in_background(home, notify)
    return server.api


def sync_in_background(home: Home, notify: Notify) -> None:
    """Let a process of its own bring in what is owed, without holding up the action."""
    from runyard.client.owed import find_records

    if not any(not record.is_synced and not record.is_alive for record in find_records(home)):
        return
    log = home.path / "sync.log"
    try:
        with log.open("ab") as out:
            subprocess.Popen(
                [sys.executable, "-m", "runyard", "sync", "--all"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
                env={**os.environ, "RUNYARD_HOME": str(home.path)},
            ).returncode = 0  # fmt: skip
    except (OSError, RunyardError) as error:
        notify(Notice(f"runs recorded without the server could not be brought in: {error}"))
        return
    notify(Notice(f"bringing in runs that were recorded without the server (see {log})"))
