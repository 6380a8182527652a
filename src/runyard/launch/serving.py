"""The server where the jobs of a cluster reach it: opened to the nodes, or a job of its own."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from runyard.client.discover import Found, ensure_server, open_to_nodes
from runyard.client.server_jobs import ServerJobs, read_server_jobs, write_server_jobs
from runyard.errors import ConfigError
from runyard.home import LISTEN_TO_CLUSTER as CLUSTER
from runyard.home import Home, read_discovery
from runyard.launch.own_jobs import OwnJob, allowed_length, own_script, submit_own
from runyard.launch.shell_words import quote
from runyard.reading.units import slurm_time
from runyard.schedulers.choice import cluster

if TYPE_CHECKING:
    from runyard.clusters.profile import Network, Profile
    from runyard.config.request import Request

NAME = "runyard-server"
_CPUS, _MEMORY = 2, 4096
# The next job takes over before the last one ends, and may have to wait in the queue for a while.
_LEAD_SHARE, _LONGEST_LEAD = 0.25, 2 * 3600.0
# Told so long before its end, the server finishes what it was asked before and writes everything.
_FAREWELL_SECONDS = 60.0


def listen_for(profile: Profile, interfaces: Sequence[str] | None = None) -> str:
    """What the server is to listen to on this machine, by what the profile says of the network."""
    network = profile.network
    ports = f"@{network.ports}" if network.port_range else ""
    return f"{_where(network, interfaces)}{ports}"


def _where(network: Network, interfaces: Sequence[str] | None) -> str:
    here = [name for _, name in socket.if_nameindex()] if interfaces is None else interfaces
    for named in (network.login_address, network.interface):
        if named in here:
            return f"{CLUSTER}:{named}"
    if network.login_address:
        return network.login_address
    if network.address_suffix:
        return f"{CLUSTER}:+{network.address_suffix}"
    return CLUSTER


def server_for_jobs(home: Home, profile: Profile, say: Callable[[str], None]) -> Found:
    """The server, reachable from compute nodes: one that listens here alone is opened."""
    if read_server_jobs(home) is not None:
        return ensure_server(home)
    before = read_discovery(home)
    server = open_to_nodes(home, listen_for(profile))
    after = read_discovery(home)
    if server.started and after is not None and (before is None or before.url != after.url):
        say(f"the server listens to the cluster now, at {after.url} (state in {home.path})")
    return server


def submit_server(
    home: Home,
    request: Request,
    *,
    python: str,
    source: str,
    seconds: float,
    links: int,
    environ: Mapping[str, str],
    options: Sequence[str] = (),
    notice: Callable[[str], None] | None = None,
) -> ServerJobs:
    """Submit the server as jobs that take it over from each other."""
    seconds = allowed_length(seconds, request)
    folder = home.path / "jobs" / f"server-{time.strftime('%Y%m%d-%H%M%S')}"
    job = server_job(home, request, python=python, source=source, seconds=seconds, options=options)
    scheduler = cluster(environ)
    text = own_script(job, request, folder, scheduler)
    minutes = wait_minutes(seconds)
    limit = request.profile.limit(request.resources.partition, request.resources.qos)
    if links > 1 and not limit.chaining:
        raise ConfigError(
            f"{request.profile.name} lets no jobs follow one another there",
            mend="--links 1, or name another --qos",
        )
    ids: list[str] = []
    for _ in range(links):
        # Not before the one ahead of it has worked for most of its time.
        after = ids[-1] if ids else None
        ids.append(submit_own(text, folder, scheduler, after=after, minutes=minutes, notice=notice))
        jobs = ServerJobs(ids=ids, folder=str(folder), submitted_at=time.time())
        write_server_jobs(home, jobs)
    return jobs


def server_job(
    home: Home,
    request: Request,
    *,
    python: str,
    source: str,
    seconds: float,
    options: Sequence[str] = (),
) -> OwnJob:
    """One link: it takes the server over from whoever has it, and is it until its time is up.

    `options`: more words for `runyard server run`.
    """
    words = " ".join(quote(word) for word in (python, "-m", "runyard", "server", "run"))
    return OwnJob(
        name=NAME,
        about="the server, until this job ends or the next one takes over",
        lines=(
            f"export RUNYARD_HOME={quote(home.path)} RUNYARD_CLUSTER={quote(request.profile.name)}",
            f'export PYTHONPATH={quote(source)}"${{PYTHONPATH:+:$PYTHONPATH}}"',
            "cd /",
            " ".join(("exec", words, "--listen", CLUSTER, *map(quote, options))),
        ),
        cpus=_CPUS,
        memory=_MEMORY,
        seconds=seconds,
        farewell=_FAREWELL_SECONDS,
    )


def wait_minutes(seconds: float) -> int:
    """How long after one job began the next may begin."""
    lead = min(_LONGEST_LEAD, seconds * _LEAD_SHARE)
    return max(1, int((seconds - lead) // 60))


def describe_job(seconds: float, links: int) -> str:
    each = slurm_time(seconds)
    return f"{links} jobs of {each}, one after another" if links > 1 else f"one job of {each}"
