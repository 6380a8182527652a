"""`runyard env build|check|show`: a project's environment, as jobs get it."""

from __future__ import annotations

import argparse
from pathlib import Path

from runyard.actions.cluster.environments import (
    EnvironmentRequest,
    build,
    build_planned,
    check,
    lines_for_jobs,
)
from runyard.cli.output import print_json, say, show
from runyard.schedulers.choice import cluster


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
        build_planned(args.plan, show)
        return 0
    request = EnvironmentRequest(
        Path.cwd(), args.kind, args.name, args.path, args.image,
        build=args.build or args.action == "build",
    )  # fmt: skip
    return {"build": _build, "check": _check, "show": _show}[args.action](request, args)


def _build(request: EnvironmentRequest, args: argparse.Namespace) -> int:
    built = build(request, show)
    if built is None:
        return 0
    if args.json:
        print_json({"folder": str(built.folder), "source": built.source, "built": built.is_new})
    else:
        print(built.folder)
    return 0


def _check(request: EnvironmentRequest, args: argparse.Namespace) -> int:
    result = check(request)
    if args.json:
        print_json(
            {
                "kind": result.kind,
                "found": result.found,
                "to_build": result.to_build,
                "checks": [
                    {"what": seen.check.what, "fine": seen.is_fine, "told": seen.told,
                     "mend": None if seen.is_fine else seen.check.mend,
                     "advice": seen.check.is_advice}
                    for seen in result.checks
                ],
            }
        )  # fmt: skip
    else:
        print(f"{result.kind}: {result.found or 'nothing to look for'}")
        if result.to_build:
            print("  it is not built yet: `runyard env build`, or the first submission does it")
        for seen in result.checks if not result.to_build else ():
            mark = "ok" if seen.is_fine else "advice" if seen.check.is_advice else "MISSING"
            told = f" ({seen.told})" if seen.told else ""
            print(f"  {mark:8}{seen.check.what}{told}")
            if not seen.is_fine:
                print(f"          {seen.check.mend}")
    return 0 if result.is_fit else 1


def _show(request: EnvironmentRequest, args: argparse.Namespace) -> int:
    lines = lines_for_jobs(request)
    wrapping, script = lines.wrapping, lines.build_script
    if args.json:
        print_json(
            {
                "kind": lines.kind,
                "before": list(wrapping.before),
                "launcher": list(wrapping.launcher),
                "header": list(wrapping.header),
                "build": script,
            }
        )
        return 0
    for title, part in (
        (f"options of {cluster().title}", wrapping.header),
        ("in the job's script", wrapping.before),
        ("around each program", wrapping.launcher[2:3]),
        ("to build it", () if script is None else (script.rstrip("\n"),)),
    ):
        if part:
            print(f"# {title}", *part, sep="\n", end="\n\n")
    if not (wrapping.before or wrapping.launcher or wrapping.header or script is not None):
        say(f"an environment of kind {lines.kind} needs nothing of its own")
    return 0
