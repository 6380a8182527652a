"""What a shell needs so that wandb logs to the server of this state folder."""

from __future__ import annotations

import os
import shlex
import socket
from collections.abc import Callable

from runyard.actions.events import Notice, Notify
from runyard.client.api import Api
from runyard.client.http import Unreachable
from runyard.client.roots import trust_of
from runyard.client.wandb_variables import wandb_variables
from runyard.home import Home, read_discovery
from runyard.proof import LOOPBACK
from runyard.schedulers.choice import cluster
from runyard.schedulers.errors import SchedulerMissing

SHELLS = ("sh", "bash", "zsh", "fish", "csh", "tcsh")


def own_variables(home: Home, connect: Callable[[Home], Api], notify: Notify) -> dict[str, str]:
    """With a key for this shell; where no server is reached, wandb records on disk."""
    try:
        api = connect(home)
    except Unreachable as error:
        folder = home.runs / "shell"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        notify(
            Notice(f"{error.what}: wandb records on disk instead, and `runyard sync` brings it in")
        )
        return {"WANDB_MODE": "offline", "WANDB_DIR": str(folder)}
    discovery = read_discovery(home)
    assert discovery is not None
    if discovery.listen in LOOPBACK and _sends_jobs():
        notify(
            Notice(
                f"{discovery.url} is reached from this machine alone, not from compute nodes;  "
                "try:  runyard server restart --listen cluster"
            )
        )
    is_ours = os.environ.get("WANDB_BASE_URL") == discovery.url
    last = os.environ.get("WANDB_API_KEY") if is_ours else None
    key = api.people.shell_key(f"shell on {socket.gethostname()}", last)
    return {
        **wandb_variables(discovery.url, key, os.environ),
        **trust_of(home, discovery, os.environ),
        **({"WANDB_APP_URL": discovery.public_url} if discovery.public_url else {}),
    }


def _sends_jobs() -> bool:
    try:
        cluster().demand()
    except SchedulerMissing:
        return False
    return True


def setting(shell: str, name: str, value: str) -> str:
    """The line by which a shell sets a variable for what it starts."""
    if shell == "fish":
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"set -gx {name} '{escaped}';"
    if shell in ("csh", "tcsh"):
        # There, `!` and line ends keep their meaning between quotes.
        quoted = shlex.quote(value).replace("!", "\\!").replace("\n", "\\\n")
        return f"setenv {name} {quoted};"
    return f"export {name}={shlex.quote(value)}"
