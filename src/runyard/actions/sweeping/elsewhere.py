"""Sweeps at a server that is not ours: W&B's cloud, a company's, a colleague's."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.actions.events import Notice, Notify
from runyard.actions.sweeping.agent_process import NO_LIMITS, Limits, agent_command
from runyard.actions.sweeping.slots import Slots
from runyard.client.keys import find_key
from runyard.client.wandb_server import WandbServer, target_url
from runyard.errors import NotFoundError, RunyardError, UsageError
from runyard.home import Home, locate, read_discovery

_SWEEP = (
    "query Sweep($entity: String, $project: String!, $sweep: String!) { "
    "project(name: $project, entityName: $entity) { sweep(sweepName: $sweep) { "
    "id name state config } } }"
)
_OVER = ("FINISHED", "CANCELED", "CRASHED", "FAILED")


@dataclass(frozen=True)
class SweepElsewhere:
    """A sweep that is there, and what its file says of the command."""

    url: str
    # ENTITY/PROJECT/SWEEP
    path: str
    command: list[Any] | None


def sweep_elsewhere(server: str | None, words: str, notify: Notify) -> SweepElsewhere | None:
    """The sweep at a server that is not ours, where one is meant: by option, or by its path."""
    if server is None and "/" not in words:
        return None
    url = server_elsewhere(server, locate(), os.environ)
    return None if url is None else find_elsewhere(url, words, notify)


def server_elsewhere(named: str | None, home: Home, environ: Mapping[str, str]) -> str | None:
    """The server that is meant, where it is not our own: by option, or by `WANDB_BASE_URL`."""
    if named is not None:
        return target_url(named)
    url = environ.get("WANDB_BASE_URL", "").strip().rstrip("/")
    try:
        own = read_discovery(home)
    except RunyardError:
        own = None
    if not url or (own is not None and own.url.rstrip("/") == url):
        return None
    return target_url(url)


def find_elsewhere(url: str, words: str, notify: Notify) -> SweepElsewhere:
    """A sweep by ENTITY/PROJECT/SWEEP; without the entity, the key's own."""
    import yaml

    *place, project, sweep = ["", *words.split("/")][-3:]
    if words.count("/") not in (1, 2) or not project or not sweep:
        raise UsageError(
            f"{words!r} names no sweep at {url}", mend="runyard sweep ENTITY/PROJECT/SWEEP"
        )
    key = find_key(url, os.environ, Path.cwd())
    if key.warning:
        notify(Notice(key.warning))
    server = WandbServer(url, key.key)
    entity = place[0] if place and place[0] else str(server.viewer()["entity"])
    names = {"entity": entity, "project": project, "sweep": sweep}
    row = ((server.graphql(_SWEEP, names).get("project") or {}).get("sweep")) or None
    if row is None:
        raise NotFoundError(
            f"there is no sweep {entity}/{project}/{sweep} at {url}",
            mend="`wandb sweep sweep.yaml` makes one there, and prints its name",
        )
    if str(row.get("state") or "").upper() in _OVER:
        raise UsageError(f"sweep {sweep} at {url} has ended: {str(row['state']).lower()}")
    config = yaml.safe_load(row.get("config") or "") or {}
    command = config.get("command") if isinstance(config, dict) else None
    return SweepElsewhere(url, f"{entity}/{project}/{sweep}", command)


def elsewhere_command(
    sweep: SweepElsewhere, *, slots: Slots, limits: Limits = NO_LIMITS, control: int | None = None
) -> list[str]:
    """The agent's, in the folder that is worked in."""
    words = agent_command(
        sweep.path, slots=slots, folder=str(Path.cwd()), limits=limits, control=control
    )
    command = ["--command", json.dumps(sweep.command)] if sweep.command else []
    return [*words, "--server", sweep.url, *command]
