"""A project's environment, as jobs get it: built, checked, or shown."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard.actions.cluster.own_jobs import remember
from runyard.actions.events import Notice, Notify, in_words
from runyard.errors import ConfigError
from runyard.home import SOURCE, locate, prepare

if TYPE_CHECKING:
    from runyard.config.request import Request
    from runyard.launch.building import Builder
    from runyard.launch.builds import Build
    from runyard.launch.environment_checks import Seen
    from runyard.launch.environments import EnvironmentPlaces, Wrapping


@dataclass(frozen=True)
class EnvironmentRequest:
    """None: as the project's file says. `build`: one made of the project's files."""

    folder: Path
    kind: str | None = None
    name: str | None = None
    path: str | None = None
    image: str | None = None
    build: bool = False


@dataclass(frozen=True)
class EnvironmentBuilt:
    """`is_new`: it was not there before."""

    folder: Path
    source: str
    is_new: bool


@dataclass(frozen=True)
class EnvironmentCheck:
    """`found`: what it is; `to_build`: it has to be built first."""

    kind: str
    place: str | None
    to_build: bool
    checks: Sequence[Seen]

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "found": self.place,
            "to_build": self.to_build,
            "checks": [
                {"what": seen.check.what, "fine": seen.is_fine, "told": seen.detail,
                 "mend": None if seen.is_fine else seen.check.mend,
                 "advice": seen.check.is_advice}
                for seen in self.checks
            ],
        }  # fmt: skip

    @property
    def is_fit(self) -> bool:
        """Whether jobs can use it, as far as one can tell before it is built."""
        bad = any(not seen.is_fine and not seen.check.is_advice for seen in self.checks)
        return self.to_build or not bad


@dataclass(frozen=True)
class EnvironmentLines:
    """What jobs get for it, and how it would be built."""

    kind: str
    wrapping: Wrapping
    build_script: str | None

    def to_json(self) -> dict[str, Any]:
        parts = {
            name: list(getattr(self.wrapping, name)) for name in ("before", "launcher", "header")
        }
        return {"kind": self.kind, **parts, "build": self.build_script}


def builder() -> Builder:
    """runyard as jobs find it."""
    from runyard.launch.building import Builder

    home = locate()

    def submitted(job_id: str, folder: str) -> None:
        remember(home, "build", [job_id], folder, time.time())

    return Builder(sys.executable, SOURCE, home.path, submitted)


def build(request: EnvironmentRequest, notify: Notify) -> EnvironmentBuilt | None:
    """Build it once; None where there is nothing to build, which is told."""
    from runyard.launch.building import is_built
    from runyard.launch.settling_environment import build_environment

    project = _project(request)
    prepare(locate())
    own = builder()
    places, plan = _planned(request, project)
    if plan is None:
        name = places.place or f"kind {project.environment.kind}"
        notify(Notice(f"there is nothing to build: {name} is used as it is"))
        return None
    if plan.inside:
        name = project.profile.name
        notify(Notice(f"{name} wants environments built inside each job: nothing to do now"))
        return None
    was_built = is_built(plan)
    if was_built:
        notify(Notice(f"the environment of {plan.source} is there already"))
    else:
        build_environment(plan, project, own, in_words(notify))
    return EnvironmentBuilt(plan.folder, plan.source, not was_built)


def build_planned(plan: Path, notify: Notify) -> None:
    """What a build's job runs: the steps as they were planned where it was submitted."""
    from runyard.launch.building import build_here, from_json

    build_here(from_json(json.loads(plan.read_text())), in_words(notify))


def check(request: EnvironmentRequest) -> EnvironmentCheck:
    """Whether it is fit for jobs."""
    from runyard.launch.building import is_built
    from runyard.launch.environment_checks import look
    from runyard.launch.environments import wrap

    project = _project(request)
    places, plan = _planned(request, project)
    checks = look(wrap(project.environment, project.profile, places).checks)
    to_build = plan is not None and not plan.inside and not is_built(plan)
    return EnvironmentCheck(project.environment.kind, places.place, to_build, checks)


def lines_for_jobs(request: EnvironmentRequest) -> EnvironmentLines:
    from runyard.launch.environments import wrap

    project = _project(request)
    places, plan = _planned(request, project)
    wrapping = wrap(project.environment, project.profile, places)
    return EnvironmentLines(
        project.environment.kind, wrapping, None if plan is None else plan.script
    )


def _planned(
    request: EnvironmentRequest, project: Request
) -> tuple[EnvironmentPlaces, Build | None]:
    from runyard.launch.settling_environment import plan_environment
    from runyard.schedulers.choice import cluster

    words = cluster().words
    return plan_environment(project, work=request.folder, home=locate().path, words=words)


def _project(request: EnvironmentRequest) -> Request:
    from runyard.clusters.environment_kinds import ENVIRONMENT_KINDS
    from runyard.config.project_file import read_project

    project = read_project(request.folder)
    kind = {"singularity": "apptainer", "mamba": "conda"}.get(request.kind or "", request.kind)
    if kind is not None and kind not in ENVIRONMENT_KINDS:
        raise ConfigError(
            f"there is no kind of environment {request.kind!r}",
            mend=f"it is one of {', '.join(ENVIRONMENT_KINDS)}",
        )
    options = {"kind": kind, "name": request.name, "path": request.path, "image": request.image}
    changed = {name: value for name, value in options.items() if value is not None}
    wanted = replace(project.environment, **changed)  # type: ignore[arg-type]
    if request.build:
        wanted = replace(wanted, build=True)
    return replace(project, environment=wanted)
