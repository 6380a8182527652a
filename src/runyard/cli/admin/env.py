"""What programs find around them: the tracker's variables, and a project's environment.

  eval "$(runyard env)"                 so that wandb logs here (bash, zsh, sh)
  runyard env --shell fish | source     fish
  eval `runyard env --shell csh`        csh, tcsh
  runyard env check                     is the project's environment fit for jobs?
  runyard env build                     build it once, from the project's files
  runyard env show                      the lines and words that jobs get for it

Nothing is changed by `env` itself: it prints, and the shell sets. In Slurm jobs that runyard
submits all of it is set already.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from runyard.actions.cluster import environments
from runyard.actions.server.shell_variables import SHELLS, own_variables, setting
from runyard.actions.tracking import other_server
from runyard.cli.connect import server
from runyard.cli.option_groups import add_tracking, project_options
from runyard.cli.output import print_answer, print_json, say, show
from runyard.cli.parser import add, flag
from runyard.errors import UsageError
from runyard.home import locate
from runyard.schedulers.choice import cluster

ACTIONS = ("build", "check", "show")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, "action ACTION", "build, check or show the project's environment (default: print "
        "the tracker's variables)", nargs="?", choices=ACTIONS)  # fmt: skip
    add(parser, "--shell", "whose words (default: sh)", choices=SHELLS, default="sh")
    add_tracking(parser)
    flag(parser, "--json", "print JSON")
    group = parser.add_argument_group("with build, check and show (default: as runyard.yaml says)")
    add(group, "--kind", "venv, uv, conda, pixi, modules, apptainer, ...")
    add(group, "--name", "its name (conda, pixi)")
    add(group, "--path FOLDER", "its folder (venv, uv, conda, pixi)")
    add(group, "--image", "the container's image")
    flag(group, "--build", "one made of project files")
    # What a build's job is given: the steps as they were planned where it was submitted.
    add(group, "--plan", argparse.SUPPRESS, type=Path)


def run(args: argparse.Namespace) -> int:
    if args.action is not None:
        return _act(args)
    if args.plan is not None:
        raise UsageError("--plan is for `runyard env build`", mend="`runyard env --help`")
    variables = other_server(project_options(args), show) or own_variables(locate(), server, show)
    if args.json:
        print_json(variables)
        return 0
    for name, value in variables.items():
        print(setting(args.shell, name, value))
    return 0


def _act(args: argparse.Namespace) -> int:
    if args.plan is not None:
        environments.build_planned(args.plan, show)
        return 0
    request = environments.EnvironmentRequest(
        Path.cwd(), args.kind, args.name, args.path, args.image,
        build=args.build or args.action == "build",
    )  # fmt: skip
    return {"build": _build, "check": _check, "show": _show}[args.action](request, args)


def _build(request: environments.EnvironmentRequest, args: argparse.Namespace) -> int:
    built = environments.build(request, show)
    if built is not None:
        content = {"folder": str(built.folder), "source": built.source, "built": built.is_new}
        print_answer(content, str(built.folder), as_json=args.json)
    return 0


def _check(request: environments.EnvironmentRequest, args: argparse.Namespace) -> int:
    result = environments.check(request)
    if args.json:
        print_json(result.to_json())
    else:
        print(f"{result.kind}: {result.place or 'nothing to look for'}")
        if result.to_build:
            print("  it is not built yet: `runyard env build`, or the first submission does it")
        for seen in result.checks if not result.to_build else ():
            mark = "ok" if seen.is_fine else "advice" if seen.check.is_advice else "MISSING"
            detail = f" ({seen.detail})" if seen.detail else ""
            print(f"  {mark:8}{seen.check.what}{detail}")
            if not seen.is_fine:
                print(f"          {seen.check.mend}")
    return 0 if result.is_fit else 1


def _show(request: environments.EnvironmentRequest, args: argparse.Namespace) -> int:
    lines = environments.lines_for_jobs(request)
    wrapping, script = lines.wrapping, lines.build_script
    if args.json:
        print_json(lines.to_json())
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
