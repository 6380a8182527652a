"""Checks of the machine on which the command runs: folders, modules, containers, tools."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from runyard.clusters.asking import Ask
from runyard.clusters.findings import Finding, State
from runyard.clusters.profile import Profile
from runyard.clusters.scratch import scratch_folder
from runyard.errors import ConfigError

GROUP = "this machine"
# The program of each kind of container, by its name in runyard.yaml.
CONTAINER_PROGRAMS = {
    "apptainer": "apptainer",
    "singularity": "apptainer",
    "shifter": "shifter",
    "podman-hpc": "podman-hpc",
    "podman": "podman",
    "enroot": "pyxis",
    "ch-run": "charliecloud",
}
_TOOLS = ("uv", "conda", "mamba", "pixi")
_LITTLE = 1 << 30


def check_site(profile: Profile, ask: Ask, environ: Mapping[str, str]) -> Iterator[Finding]:
    yield _python()
    yield _tools(environ)
    yield _modules(environ)
    yield from _cuda(ask, environ)
    yield _containers(profile, environ)
    yield _scratch(profile, environ)
    if profile.storage.quotas:
        yield _quotas(profile)


def container_kinds(environ: Mapping[str, str]) -> list[str]:
    """The kinds of containers whose program is on the path."""
    path = environ.get("PATH")
    kinds = [kind for name, kind in CONTAINER_PROGRAMS.items() if shutil.which(name, path=path)]
    return list(dict.fromkeys(kinds))


def has_modules(environ: Mapping[str, str]) -> bool:
    return any(environ.get(name) for name in ("LMOD_CMD", "MODULESHOME", "MODULEPATH"))


def _finding(name: str, state: State, says: str, mend: str | None = None) -> Finding:
    return Finding(GROUP, name, state, says, mend)


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return _finding("python", "ok", f"runyard runs with {sys.executable} ({version})")


def _tools(environ: Mapping[str, str]) -> Finding:
    there = [name for name in _TOOLS if shutil.which(name, path=environ.get("PATH"))]
    if there:
        return _finding("tools", "ok", f"{', '.join(there)} for environments")
    return _finding("tools", "ok", "no uv, conda or pixi; environments are made by python -m venv")


def _modules(environ: Mapping[str, str]) -> Finding:
    if not has_modules(environ):
        return _finding("modules", "skip", "there is no module system")
    kind = "Lmod" if environ.get("LMOD_CMD") else "environment modules"
    return _finding("modules", "ok", f"{kind} {environ.get('LMOD_VERSION', '')}".strip())


def cuda_modules(ask: Ask, environ: Mapping[str, str]) -> list[str]:
    """The CUDA modules that the site offers."""
    if not has_modules(environ):
        return []
    # `module` is a function of login shells, and prints its list to stderr.
    answer = ask("bash", "-lc", "module --terse avail cuda 2>&1", seconds=30)
    names = re.findall(r"^(?:\S*/)?(cuda/[\w.+-]+)", answer.text, re.MULTILINE | re.IGNORECASE)
    return list(dict.fromkeys(names))


def _cuda(ask: Ask, environ: Mapping[str, str]) -> Iterator[Finding]:
    offered = cuda_modules(ask, environ)
    used = re.search(r"release ([\d.]+)", ask("nvcc", "--version").text)
    words = []
    if offered:
        words.append(f"modules {', '.join(offered[:8])}")
    if used:
        words.append(f"nvcc of this shell is {used[1]}")
    if words:
        yield _finding("cuda", "ok", "; ".join(words))


def _containers(profile: Profile, environ: Mapping[str, str]) -> Finding:
    there = container_kinds(environ)
    wanted = profile.containers.program
    if wanted and wanted not in there:
        module = profile.containers.module
        if module:
            return _finding("containers", "ok", f"{wanted}, by `module load {module}`")
        return _finding(
            "containers", "warn", f"the profile runs images with {wanted}, which is not here",
            "compute nodes may have it all the same: `runyard doctor --job` looks",
        )  # fmt: skip
    if there:
        return _finding("containers", "ok", ", ".join(there))
    return _finding("containers", "skip", "no program for containers is here")


def _scratch(profile: Profile, environ: Mapping[str, str]) -> Finding:
    try:
        folder = scratch_folder(profile, environ)
    except ConfigError as error:
        return _finding("scratch", "fail", error.what, error.mend)
    nearest = next((place for place in (folder, *folder.parents) if place.exists()), Path("/"))
    if not os.access(nearest, os.W_OK):
        return _finding(
            "scratch", "fail", f"{folder} cannot be written",
            "export SCRATCH=FOLDER, or write storage: {scratch: FOLDER} into a profile",
        )  # fmt: skip
    try:
        free = shutil.disk_usage(nearest).free
    except OSError as error:
        return _finding("scratch", "fail", f"{folder}: {error.strerror}")
    space = f"{free / 1e9:,.0f} GB free"
    purge = profile.storage.purge_days
    days = f"; files go after {purge} days" if purge else ""
    made = "" if folder.exists() else ", which is made when it is needed"
    if free < _LITTLE:
        return _finding("scratch", "warn", f"{folder}: {space}", "free some space there")
    return _finding("scratch", "ok", f"{folder}{made}: {space}{days}")


def _quotas(profile: Profile) -> Finding:
    quotas = ", ".join(f"{place} {much}" for place, much in profile.storage.quotas.items())
    return _finding("quotas", "ok", f"you may store: {quotas}")
