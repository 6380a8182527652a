"""Where a command runs, and which cluster that is."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from runyard.clusters.load import GENERIC, known_profiles, profile_folders
from runyard.schedulers.slurm.name import cluster_name

CLUSTER = "RUNYARD_CLUSTER"


@dataclass(frozen=True)
class Place:
    """What identifies a cluster."""

    hosts: tuple[str, ...] = ()
    """The names of this machine, short and in full."""
    cluster_name: str | None = None
    """What Slurm calls the cluster."""
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Recognised:
    """A profile's name, and why it was chosen."""

    name: str
    because: str


def this_place(environ: Mapping[str, str] = os.environ) -> Place:
    host = socket.gethostname()
    hosts = tuple(dict.fromkeys((host.split(".")[0], host, _full_name(environ, host))))
    return Place(hosts, cluster_name(environ), environ)


def recognise(place: Place, folders: Sequence[Path] | None = None) -> Recognised:
    """The profile for a place: the one in RUNYARD_CLUSTER, else one with Slurm's name of the
    cluster, else one with the name of the host, else `generic`."""
    named = place.environ.get(CLUSTER)
    if named:
        return Recognised(named, f"{CLUSTER} says so")
    folders = profile_folders(place.environ) if folders is None else folders
    # A group's profile inherits the hosts of the cluster's profile, and is tried first.
    known = sorted(known_profiles(folders), key=lambda profile: -profile.depth)
    for profile in known:
        if _matches(place.cluster_name, profile.identity.cluster_names):
            return Recognised(profile.name, f"Slurm calls the cluster {place.cluster_name}")
    for profile in known:
        for host in place.hosts:
            if _matches(host, profile.identity.hosts):
                return Recognised(profile.name, f"this host is {host}")
    names = [f"host {host}" for host in place.hosts[:1]]
    names += [f"cluster {place.cluster_name}"] if place.cluster_name else []
    return Recognised(GENERIC, f"no profile knows {' or '.join(names) or 'this machine'}")


def _matches(name: str | None, patterns: Sequence[str]) -> bool:
    return name is not None and any(
        fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns
    )


def _full_name(environ: Mapping[str, str], host: str) -> str:
    # getfqdn() may wait for a name server that does not answer. /etc/hosts and the variables of the
    # site are enough to recognise a cluster.
    domain = environ.get("CC_CLUSTER") or environ.get("NERSC_HOST") or environ.get("SYSTEMNAME")
    return f"{host}.{domain}" if domain and "." not in host else host
