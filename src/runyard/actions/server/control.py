"""Start, stop, look at and copy the server of a state folder."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.actions.events import Notify
from runyard.actions.server import jobs as server_jobs
from runyard.actions.server.access import Access
from runyard.client.api import Api
from runyard.client.discover import (
    Found,
    find_server,
    is_held,
    restart_server,
    start_server,
    stop_server,
)
from runyard.client.server_jobs import ServerJobs, read_server_jobs
from runyard.errors import ServerError, StateError
from runyard.home import Discovery, Home, read_discovery
from runyard.shapes.runs import Health, WriterTimes


@dataclass(frozen=True)
class ServerRequest:
    """Where it listens; None: as last time."""

    listen: str | None
    port: int | None
    access: Access


@dataclass(frozen=True)
class ServerStatus:
    """`health`: None where it does not answer; `discovery`: what the folder says of it."""

    home: Home
    health: Health | None
    discovery: Discovery | None
    jobs: ServerJobs | None

    def to_json(self) -> dict[str, Any]:
        health = self.health
        return {
            "running": health is not None,
            "url": self.discovery.url if self.discovery else None,
            "state_folder": str(self.home.path),
            "log": str(self.home.log),
            "jobs": self.jobs.ids if self.jobs else None,
            **({**health, "running": True, "running_runs": health["running"]} if health else {}),
        }

    def is_held(self) -> bool:
        """Whether a process that does not answer holds the folder; takes some seconds."""
        return is_held(self.home, beats=2)


def start(home: Home, request: ServerRequest, notify: Notify) -> Found:
    """Start it, or find it as it was asked for; one that runs otherwise is an error."""
    server_jobs.forget_ended(home, notify)
    access = request.access
    server = start_server(home, listen=request.listen, port=request.port, options=access.options())
    discovery = None if server.started else read_discovery(home)
    is_elsewhere = discovery is not None and (
        request.listen not in (None, discovery.listen)
        or request.port not in (None, discovery.port)
        or access.tls not in (None, bool(discovery.authority))
        or bool(access.tls_cert)
        or access.url not in (None, discovery.public_url)
        or access.proxy not in (None, discovery.proxies)
    )
    if is_elsewhere:
        raise ServerError(
            f"the server already runs at {server.api.url}",
            mend="`runyard server restart` with the same options moves it",
        )
    return server


def stop(home: Home, *, force: bool = False) -> ServerJobs | bool:
    """The jobs that were cancelled, where it was one; else whether there was one to stop."""
    jobs = read_server_jobs(home)
    if jobs is not None:
        server_jobs.stop(home, jobs, force=force)
        return jobs
    return stop_server(home, force=force)


def swept_by_agents(home: Home) -> list[str]:
    """The ids of sweeps whose agents start the server again when they need it."""
    api = find_server(home)
    # A server that cannot answer this can be stopped all the same.
    with contextlib.suppress(ServerError):
        running = api.sweeps.sweeps(open_only=True) if api is not None else []
        return [sweep["id"] for sweep in running if sweep["agents"]]
    return []


def restart(home: Home, request: ServerRequest, *, force: bool = False) -> Found:
    server_jobs.refuse_restart(home)
    options = request.access.options()
    return restart_server(
        home, listen=request.listen, port=request.port, force=force, options=options
    )


def status(home: Home) -> ServerStatus:
    """Never starts one."""
    api = find_server(home)
    return ServerStatus(
        home,
        api.health() if api else None,
        read_discovery(home) if home.path.is_dir() else None,
        read_server_jobs(home),
    )


def backup(connect: Callable[[], Api], target: Path, progress: Callable[[int, int], None]) -> int:
    """A copy that is a state folder itself, made while everything goes on; how many bytes it has.

    `progress` hears how many bytes of how many are copied.
    """
    if os.path.lexists(target):
        raise StateError(f"{target} is there already", mend="name a folder that is not there yet")
    return connect().backup(str(target), progress)


def cluster_listen() -> str:
    """What this cluster's profile says of how its nodes reach this machine."""
    from runyard.clusters.load import load_profile
    from runyard.clusters.place import recognise, this_place
    from runyard.launch.serving import listen_for

    return listen_for(load_profile(recognise(this_place()).name))


def writer_line(writer: dict[str, WriterTimes]) -> str:
    """What could make programs wait that log: all changes go through one thread."""
    changes = {kind: times for kind, times in writer.items() if kind != "commit"}
    if not changes:
        return "nothing was written yet"
    slowest = max(changes, key=lambda kind: changes[kind]["longest"])
    longest, wait = changes[slowest]["longest"], max(t["longest_wait"] for t in changes.values())
    count = sum(times["count"] for times in changes.values())
    return (
        f"{count} changes written, the longest in {longest * 1e3:.0f} ms ({slowest}); "
        f"none waited longer than {wait * 1e3:.0f} ms (--json: by kind)"
    )
