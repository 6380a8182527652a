"""The server that this shell's state folder has, for any command that needs it."""

from __future__ import annotations

from runyard.actions.connect import open_server
from runyard.cli.output import show
from runyard.client.api import Api
from runyard.home import Home


def server(home: Home | None = None, *, quiet: bool = False, sync: bool = True) -> Api:
    """The running server; starts it, and says so, where none runs."""
    return open_server(show, home, quiet=quiet, sync=sync)
