"""From what a request says of its environment to what a job needs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.launch.building import Builder, build_here, build_in_job, is_built, write_wanted
from runyard.launch.builds import Build, files_for, plan_build
from runyard.launch.containers import CONTAINERS
from runyard.launch.environment_checks import demand
from runyard.launch.environment_places import find_environment_places
from runyard.launch.environments import EnvironmentPlaces, Wrapping, wrap
from runyard.schedulers.choice import cluster

if TYPE_CHECKING:
    from runyard.config.request import Request
    from runyard.schedulers.protocol import Scheduler
    from runyard.schedulers.script_words import ScriptWords

_BUILT = "environments"


def settle_environment(
    request: Request,
    *,
    work: Path,
    builder: Builder,
    scheduler: Scheduler,
    say: Callable[[str], None],
    mounts: tuple[str, ...] = (),
    dry_run: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> Wrapping:
    """What a job's programs need around them. Builds where that is asked, and refuses what is not
    there; a dry run builds nothing, and leaves the checks to whoever wants them."""
    places, build = plan_environment(
        request, work=work, home=builder.home, words=scheduler.words, mounts=mounts, environ=environ
    )
    if build is not None and build.inside:
        say(f"each job builds its environment of {build.source} on its node's own disk")
        if not dry_run:
            write_wanted(build)
    elif build is not None:
        if is_built(build):
            say(f"the environment of {build.source} is there already: {build.folder}")
        elif dry_run:
            say(f"the environment of {build.source} would be built first: {build.folder}")
        else:
            build_environment(build, request, builder, say, environ=environ)
    wrapping = wrap(request.environment, request.profile, places)
    if not dry_run:
        demand(wrapping.checks, say)
    elif build is not None and not is_built(build):
        wrapping = replace(wrapping, checks=())  # There is nothing to look at yet.
    return wrapping


def plan_environment(
    request: Request,
    *,
    work: Path,
    home: Path,
    words: ScriptWords,
    mounts: tuple[str, ...] = (),
    environ: Mapping[str, str] = os.environ,
) -> tuple[EnvironmentPlaces, Build | None]:
    """Where the environment is, and how it is built, where that is asked."""
    environment, profile = request.environment, request.profile
    places = find_environment_places(
        environment, profile, project=request.folder, work=work,
        words=words, gpus=bool(request.resources.gpus), mounts=mounts, environ=environ,
    )  # fmt: skip
    if not _wants_build(request, places):
        return places, None
    files = {
        name: text
        for name in files_for(environment.kind)
        if (text := _read(request.folder / name)) is not None
    }
    build = plan_build(
        environment, profile, name=request.project_name, project=request.folder, files=files,
        into=home / _BUILT, conda=places.conda,
    )  # fmt: skip
    if build.inside:
        source = build.wanted_file if build.wanted is not None else request.folder / build.source
        return replace(places, place=str(source)), build
    if environment.kind == "pixi":
        return places, build
    if environment.kind in CONTAINERS and CONTAINERS[environment.kind].has_names:
        return places, build
    return replace(places, place=str(build.folder)), build


def build_environment(
    build: Build,
    request: Request,
    builder: Builder,
    say: Callable[[str], None],
    *,
    environ: Mapping[str, str] = os.environ,
) -> None:
    """Where the profile wants it: in a job of its own, or here."""
    where = request.profile.software.build_where
    if where == "job" and cluster(environ).is_installed():
        build_in_job(build, request, builder, say, environ=environ)
    else:
        say(f"building the environment of {build.source}: {build.folder}")
        build_here(build, say)
    say("the environment is built; later launches use it as it is")


def _wants_build(request: Request, places: EnvironmentPlaces) -> bool:
    environment = request.environment
    if not environment.build:
        return False
    if environment.kind in CONTAINERS:
        # What lies in a file is there, or it is not; what has a registry's name is fetched.
        return places.place is not None and not places.place.startswith("/")
    return not (environment.path and places.place and Path(places.place).exists())


def _read(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
