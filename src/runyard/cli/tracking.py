"""Where programs' wandb calls go: to our own server, or to another one."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from runyard.cli.output import say
from runyard.client import wandb_server
from runyard.client.environment import LOGS_TO
from runyard.client.keys import find_key
from runyard.client.wandb_server import EMBEDDED, target_url


def add_tracking(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tracking",
        metavar="WHERE",
        help="where wandb logs: embedded (runyard's own server, the default), cloud (W&B's), or "
        "the URL of any W&B server",
    )
    parser.add_argument(
        "--key", metavar="NAME", help="with another server: the key's name in keys.json"
    )


class Tracking(NamedTuple):
    """As the options have it, or runyard.yaml."""

    server: str = EMBEDDED
    entity: str | None = None
    project: str | None = None
    key: str | None = None

    @property
    def is_elsewhere(self) -> bool:
        return self.server != EMBEDDED


def other_server(args: argparse.Namespace) -> dict[str, str] | None:
    """What the client needs to reach another server, and nothing else; None for our own."""
    told = tracking_of(args, Path.cwd())
    if not told.is_elsewhere:
        return None
    url = target_url(told.server)
    return {"WANDB_BASE_URL": url, "WANDB_API_KEY": _key(url, told.key, os.environ)}


def tracking_of(args: argparse.Namespace, folder: Path) -> Tracking:
    """What is said of it; of runyard.yaml no more is read than that."""
    from runyard.config.flags import given_flags
    from runyard.config.project_text import find_project_file, read_project_text

    path = find_project_file(folder)
    flags = given_flags(args)
    told: Mapping[str, Any] = {}
    if path is not None:
        data = read_project_text(path).data
        told = data.get("tracking") or {}
        if any((part or {}).get("tracking") for part in (data.get("clusters") or {}).values()):
            from runyard.config.project_file import read_project

            told = vars(read_project(folder, flags).tracking)  # The cluster decides.
    named = getattr(args, "tracking", None), getattr(args, "key", None)
    return Tracking(
        named[0] or flags["tracking.server"] or told.get("server") or EMBEDDED,
        flags["tracking.entity"] or told.get("entity"),
        flags["tracking.project"] or told.get("project"),
        named[1] or flags["tracking.key"] or told.get("key"),
    )


def tell_agents(args: argparse.Namespace, folder: Path) -> None:
    """Let the agents that this command starts here know of another server."""
    server, entity, project, key = tracking_of(args, folder)
    told = wandb_server.other_server(
        server, entity=entity, project=project, account=key, folder=str(Path.cwd())
    )
    if told is None:
        return
    _key(told["url"], key, os.environ)
    say(f"programs log to {told['url']}; it comes to runyard's server too when the agent ends")
    os.environ[LOGS_TO] = json.dumps(told)


def require_key(server: str, account: str | None) -> None:
    """Refuse a job that would not find the key of the server it is to log to."""
    if server == EMBEDDED:
        return
    # A variable of this shell's does not come to the nodes, as no key stands in a script.
    environ = {name: value for name, value in os.environ.items() if name != "WANDB_API_KEY"}
    _key(target_url(server), account, environ)


def _key(url: str, account: str | None, environ: Mapping[str, str]) -> str:
    found = find_key(url, environ, Path.cwd(), account)
    if found.warning:
        say(found.warning)
    return found.key
