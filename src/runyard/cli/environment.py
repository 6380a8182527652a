"""`runyard env build|check|show`: a project's environment, as jobs get it."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.cli.output import print_json, say
from runyard.errors import ConfigError
from runyard.home import locate, prepare

if TYPE_CHECKING:
    from runyard.config.request import Request


def add_environment_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("with build, check and show (default: as runyard.yaml says)")
    group.add_argument("--kind", help="venv, uv, conda, pixi, modules, apptainer, ...")
    group.add_argument("--name", help="its name (conda, pixi)")
    group.add_argument("--path", metavar="FOLDER", help="its folder (venv, uv, conda, pixi)")
    group.add_argument("--image", help="the container's image")
    group.add_argument("--build", action="store_true", help="one made of project files")
    # What a build's job is given: the steps as they were planned where it was submitted.
    group.add_argument("--plan", type=Path, help=argparse.SUPPRESS)


def act(args: argparse.Namespace) -> int:
    if args.plan is not None:
        return _build_planned(args.plan)
    request = _request(args)
    return {"build": _build, "check": _check, "show": _show}[args.action](request, args)


def _request(args: argparse.Namespace) -> Request:
    from runyard.clusters.environment_kinds import ENVIRONMENT_KINDS
    from runyard.config.project_file import read_project

    request = read_project(Path.cwd())
    kind = {"singularity": "apptainer", "mamba": "conda"}.get(args.kind, args.kind)
    if kind is not None and kind not in ENVIRONMENT_KINDS:
        raise ConfigError(
            f"there is no kind of environment {args.kind!r}",
            mend=f"it is one of {', '.join(ENVIRONMENT_KINDS)}",
        )
    given = {
        name: value
        for name, value in (
            ("kind", kind), ("name", args.name), ("path", args.path), ("image", args.image),
        )
        if value is not None
    }  # fmt: skip
    wanted = replace(request.environment, **given)
    if args.build or args.action == "build":
        wanted = replace(wanted, build=True)
    return replace(request, environment=wanted)


def _build(request: Request, args: argparse.Namespace) -> int:
    from runyard.actions.submitting.planning import builder
    from runyard.launch.building import is_built
    from runyard.launch.settling_environment import build_environment, plan_environment

    prepare(locate())
    made = builder()
    setting, build = plan_environment(request, work=Path.cwd(), home=made.home)
    if build is None:
        found = setting.found or f"kind {request.environment.kind}"
        say(f"there is nothing to build: {found} is used as it is")
        return 0
    if build.inside:
        say(f"{request.profile.name} wants environments built inside each job: nothing to do now")
        return 0
    was_built = is_built(build)
    if was_built:
        say(f"the environment of {build.source} is there already")
    else:
        build_environment(build, request, made, say)
    if args.json:
        print_json({"folder": str(build.folder), "source": build.source, "built": not was_built})
    else:
        print(build.folder)
    return 0


def _build_planned(plan: Path) -> int:
    from runyard.launch.building import build_here, from_json

    build_here(from_json(json.loads(plan.read_text())), say)
    return 0


def _check(request: Request, args: argparse.Namespace) -> int:
    from runyard.launch.building import is_built
    from runyard.launch.environment_checks import look
    from runyard.launch.environments import wrap
    from runyard.launch.settling_environment import plan_environment

    setting, build = plan_environment(request, work=Path.cwd(), home=locate().path)
    seen = look(wrap(request.environment, request.profile, setting).checks)
    unbuilt = build is not None and not build.inside and not is_built(build)
    if args.json:
        print_json(
            {
                "kind": request.environment.kind,
                "found": setting.found,
                "to_build": unbuilt,
                "checks": [
                    {"what": one.check.what, "fine": one.is_fine, "told": one.told,
                     "mend": None if one.is_fine else one.check.mend,
                     "advice": one.check.is_advice}
                    for one in seen
                ],
            }
        )  # fmt: skip
    else:
        print(f"{request.environment.kind}: {setting.found or 'nothing to look for'}")
        if unbuilt:
            print("  it is not built yet: `runyard env build`, or the first submission does it")
        for one in seen if not unbuilt else ():
            mark = "ok" if one.is_fine else "advice" if one.check.is_advice else "MISSING"
            told = f" ({one.told})" if one.told else ""
            print(f"  {mark:8}{one.check.what}{told}")
            if not one.is_fine:
                print(f"          {one.check.mend}")
    bad = any(not one.is_fine and not one.check.is_advice for one in seen)
    return 1 if bad and not unbuilt else 0


def _show(request: Request, args: argparse.Namespace) -> int:
    from runyard.launch.environments import wrap
    from runyard.launch.settling_environment import plan_environment

    setting, build = plan_environment(request, work=Path.cwd(), home=locate().path)
    wrapping = wrap(request.environment, request.profile, setting)
    if args.json:
        print_json(
            {
                "kind": request.environment.kind,
                "before": list(wrapping.before),
                "launcher": list(wrapping.launcher),
                "header": list(wrapping.header),
                "build": None if build is None else build.script,
            }
        )
        return 0
    for title, lines in (
        ("options of sbatch", wrapping.header),
        ("in the job's script", wrapping.before),
        ("around each program", wrapping.launcher[2:3]),
        ("to build it", () if build is None else (build.script.rstrip("\n"),)),
    ):
        if lines:
            print(f"# {title}", *lines, sep="\n", end="\n\n")
    if not (wrapping.before or wrapping.launcher or wrapping.header or build):
        say(f"an environment of kind {request.environment.kind} needs nothing of its own")
    return 0
