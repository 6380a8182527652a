"""runyard.yaml, the flags and the profile into one request.

What stands nearer to the user wins: an option over the file's part for this cluster, that over the
rest of the file, that over the profile's defaults. One exception, on purpose: a sweep id in the
file wins over the one on the command line, and it is said.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from runyard.clusters.load import GENERIC, load_profile, profile_folders, profile_names
from runyard.clusters.place import recognise, this_place
from runyard.clusters.profile import Profile
from runyard.config.command_file import find_command_file, read_command_file
from runyard.config.flags import NO_FLAGS, Flags
from runyard.config.project_shape import ClusterFile
from runyard.config.project_text import (
    ONE_OF,
    SCRIPTS_FOLDER,
    ProjectText,
    find_passed_over,
    find_project_file,
    find_root,
    for_cluster,
    read_project_text,
)
from runyard.config.request import Request
from runyard.config.settling import (
    settle_environment,
    settle_job_type,
    settle_resources,
    with_defaults,
)
from runyard.config.variables import fill_in
from runyard.config.worker_command import read_worker
from runyard.errors import ConfigError
from runyard.reading.fields import Fields
from runyard.reading.problems import Findings, closest
from runyard.reading.records import read_record

# Of names that nobody here reads, so many are told.
_MOST_NAMED = 20


def read_project(
    folder: Path,
    flags: Flags = NO_FLAGS,
    profile: Profile | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    needs_command: bool = False,
) -> Request:
    """The request of the project that `folder` lies in. Without `profile` it is the one that
    `--cluster` or the file names, or the one of the cluster that this machine belongs to.
    `needs_command`: where nobody says what to run, it is what the usual file of commands holds."""
    file = read_project_text(find_project_file(folder))
    chosen = profile or load_profile(_cluster_name(file, flags, environ))
    data, origins = for_cluster(file, _names(chosen))
    if data.get("profile"):
        changed = next(where for path, where in origins.items() if path.startswith("profile"))
        chosen = _changed_profile(chosen.name, data["profile"], changed)
    read = read_record(ClusterFile, Fields(data, (), Findings()))  # Checked when it was read.
    read, origins, warnings = _with_flags(read, origins, flags)
    warnings += [*_unknown_clusters(file, chosen.name), *_passed_over(file, folder)]
    read = fill_in(read, origins, environ)
    root = file.folder or find_root(folder)
    if needs_command and not (read.command or read.command_file or read.sweep):
        usual = find_command_file((folder, root, root / SCRIPTS_FOLDER))
        if usual is not None:
            read = replace(read, command_file=str(usual))
            origins["command_file"] = str(usual)
    resources = with_defaults(read.resources, chosen)
    environment = settle_environment(read.environment, origins)
    request = Request(
        name=read.name,
        project_name=root.name or "project",
        folder=root,
        command=read.command,
        sweep_file=read.sweep,
        sweep_id=read.sweep_id,
        job_type=settle_job_type(read, origins),
        distributed=read.distributed,
        resources=settle_resources(resources, read.distributed, origins),
        environment=environment,
        agents=read.agents,
        staging=read.staging,
        tracking=read.tracking,
        checkpoints=read.checkpoints,
        gauge=read.gauge,
        rehearse=read.rehearse,
        profile=chosen,
        origins=origins,
        warnings=tuple(warnings),
    )
    if read.command_file is not None:
        if read.command is not None:
            raise ConfigError(
                f"{origins['command']} and {origins['command_file']} both say the command",
                mend="remove one of the two",
            )
        # An option is typed where the user stands.
        at = Path.cwd() if "command_file" in flags.given else root
        path = at / read.command_file
        command = read_command_file(path if path.is_file() else root / read.command_file, origins)
        request = replace(request, command=command)
    return _as_workers(request)


def _as_workers(request: Request) -> Request:
    """Where the command is a sweep's worker, the sweep's agents are what is wanted. An id that is
    given replaces the last part of what the command names."""
    worker = read_worker(request.command or ())
    if worker is None:
        return request
    agents = request.agents
    if agents.trials_each is None:
        agents = replace(agents, trials_each=worker.count)
    named = worker.path(request.sweep_id)
    return replace(request, command=None, sweep_id=named, job_type="sweep", agents=agents)


def _cluster_name(file: ProjectText, flags: Flags, environ: Mapping[str, str]) -> str:
    named = flags["cluster"] or file.data.get("cluster")
    return str(named) if named else recognise(this_place(environ)).name


def _passed_over(file: ProjectText, folder: Path) -> list[str]:
    """A colleague's file is a project's, too: who wants theirs is told how."""
    path = None if file.folder else find_passed_over(folder)
    if path is None:
        return []
    return [
        f"{path} is not read, since it is somebody else's, or all can write there: if you trust "
        f"it, `cd {path.parent}`"
    ]


def _unknown_clusters(file: ProjectText, chosen: str) -> list[str]:
    """Parts that no cluster here would ever read: misspelt, or for a colleague's own profile."""
    parts = [str(name) for name in file.data.get("clusters") or () if str(name) != chosen]
    known = profile_names(profile_folders()) if parts else []
    warnings = []
    for name in parts[:_MOST_NAMED]:
        if name not in known:
            near = closest(name, known)
            guess = f"; did you mean {near}?" if near else ""
            warnings.append(
                f"{file.where(('clusters', name))}: no profile is called {name}, so nothing reads "
                f"this part here{guess}"
            )
    return warnings


def _names(profile: Profile) -> list[str]:
    """What a cluster goes by: its own name, and those of the profiles that it inherits."""
    inherited = [Path(file).stem for file in profile.files]
    return [*dict.fromkeys(name for name in inherited if name not in (GENERIC, profile.name)),
            profile.name]  # fmt: skip


def _changed_profile(name: str, overrides: Mapping[str, Any], where: str) -> Profile:
    try:
        return load_profile(name, overrides=overrides)
    except ConfigError as error:
        raise ConfigError(
            f"{where}: the profile {name} with this project's changes cannot be",
            said=error.what,
            mend=error.mend,
        ) from None


def _with_flags(
    read: ClusterFile, origins: Mapping[str, str], flags: Flags
) -> tuple[ClusterFile, dict[str, str], list[str]]:
    """What the options say over the file, who said what, and what is worth a warning."""
    merged, warnings = dict(origins), []
    for pair in ONE_OF:
        paths = [".".join(path) for path in pair]
        unsaid = [path for path in paths if path not in flags.given]
        if len(unsaid) == 1:
            read = _set(read, unsaid[0], None)
            merged.pop(unsaid[0], None)
    for path, flag in flags.given.items():
        if path == "cluster":
            continue
        if path == "sweep_id" and read.sweep_id is not None:
            if flag.value != read.sweep_id:
                warnings.append(
                    f"{origins['sweep_id']} names the sweep {read.sweep_id}, which wins over "
                    f"{flag.option}"
                )
            continue
        value = flag.value
        if path == "environment.variables":
            value = {**read.environment.variables, **value}
        read = _set(read, path, value)
        merged[path] = flag.option
    return read, merged, warnings


def _set(read: ClusterFile, path: str, value: Any) -> ClusterFile:
    section, _, name = path.rpartition(".")
    if section:
        value = replace(getattr(read, section), **{name: value})
    return replace(read, **{section or name: value})
