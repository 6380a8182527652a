"""Where programs' wandb calls go: to our own server, or to another one."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from runyard.actions.events import Notice, Notify
from runyard.client import wandb_server
from runyard.client.keys import find_key
from runyard.client.wandb_server import EMBEDDED, target_url
from runyard.config.flags import NO_FLAGS, Flags
from runyard.node.agent.options import LOGS_TO


@dataclass(frozen=True)
class ProjectOptions:
    """What a request says of the project beside runyard.yaml, whose settings it replaces."""

    flags: Flags = NO_FLAGS
    project: str | None = None
    entity: str | None = None
    tracking: str | None = None
    """Where wandb logs: embedded, cloud, or a URL."""
    key: str | None = None
    """The key's name in keys.json, with another server."""


class Tracking(NamedTuple):
    """As the options have it, or runyard.yaml."""

    server: str = EMBEDDED
    entity: str | None = None
    project: str | None = None
    key: str | None = None

    @property
    def is_elsewhere(self) -> bool:
        return self.server != EMBEDDED


def other_server(options: ProjectOptions, notify: Notify) -> dict[str, str] | None:
    """What the client needs to reach another server, and nothing else; None for our own."""
    tracking = tracking_of(options, Path.cwd())
    if not tracking.is_elsewhere:
        return None
    url = target_url(tracking.server)
    return {"WANDB_BASE_URL": url, "WANDB_API_KEY": _key(url, tracking.key, os.environ, notify)}


def tracking_of(options: ProjectOptions, folder: Path) -> Tracking:
    """What is said of it; of runyard.yaml no more is read than that."""
    from runyard.config.project_text import find_project_file, read_project_text

    path = find_project_file(folder)
    flags = options.flags
    written: Mapping[str, Any] = {}
    if path is not None:
        data = read_project_text(path).data
        written = data.get("tracking") or {}
        if any((part or {}).get("tracking") for part in (data.get("clusters") or {}).values()):
            from runyard.config.project_file import read_project

            written = vars(read_project(folder, flags).tracking)  # The cluster decides.
    return Tracking(
        options.tracking or flags["tracking.server"] or written.get("server") or EMBEDDED,
        flags["tracking.entity"] or written.get("entity"),
        flags["tracking.project"] or written.get("project"),
        options.key or flags["tracking.key"] or written.get("key"),
    )


def agent_variables(options: ProjectOptions, folder: Path, notify: Notify) -> dict[str, str]:
    """What the agents that are started here have to know of another server."""
    server, entity, project, key = tracking_of(options, folder)
    other = wandb_server.other_server(
        server, entity=entity, project=project, account=key, folder=str(Path.cwd())
    )
    if other is None:
        return {}
    _key(other["url"], key, os.environ, notify)
    notify(
        Notice(
            f"programs log to {other['url']}; it comes to runyard's server too when the agent ends"
        )
    )
    return {LOGS_TO: json.dumps(other)}


def require_key(server: str, account: str | None, notify: Notify) -> None:
    """Refuse a job that would not find the key of the server it is to log to."""
    if server == EMBEDDED:
        return
    # A variable of this shell's does not come to the nodes, as no key stands in a script.
    environ = {name: value for name, value in os.environ.items() if name != "WANDB_API_KEY"}
    _key(target_url(server), account, environ, notify)


def _key(url: str, account: str | None, environ: Mapping[str, str], notify: Notify) -> str:
    key = find_key(url, environ, Path.cwd(), account)
    if key.warning:
        notify(Notice(key.warning))
    return key.key
