"""What a sweep, a job or a project cost, and what came of it: asked against
used, what was wasted and what to ask for instead, failures by cause, the best
trials, which parameters matter.

  runyard report                       the newest sweep, in the terminal
  runyard report SWEEP -o report.html  one file, to keep or send: works offline
  runyard report SWEEP -o appendix.tex its tables in LaTeX (.md: Markdown)
  runyard report SWEEP -o plots.png    all plots (.svg too); --plot NAME: one
  runyard report SWEEP -o trials.csv   a row a trial: settings, results, use
  runyard report SWEEP -o results/     all of these, in a folder
  runyard report 4021                  a job of Slurm's
  runyard report --project spirals     all sweeps and jobs of a project

CPU and memory are what Slurm's accounting says; where a site has none, what
agents measured of each attempt. GPUs are always what agents measured.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.cli.completers import complete_file, complete_job, complete_project, complete_sweep
from runyard.cli.connect import server
from runyard.cli.output import print_json, say
from runyard.cli.parser import add, flag
from runyard.cli.streams import unfiltered
from runyard.errors import UsageError

if TYPE_CHECKING:
    from runyard.report.findings import Report

METAVAR = "SWEEP|JOB|PROJECT"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, "what", "what to report on (default: the newest sweep)",
        nargs="?", metavar=METAVAR, completer=_complete)  # fmt: skip
    add(parser, "-P --project NAME", "report on this project (NAME or ENTITY/NAME)",
        completer=complete_project)  # fmt: skip
    add(parser, "-o --output FILE", "write it there: .html .md .tex .csv .json .txt .svg .png, or "
        "a folder for all; may be repeated",
        type=Path, action="append", default=[], completer=complete_file)  # fmt: skip
    add(parser, "--plot NAME", "of .svg and .png: only this plot")
    flag(parser, "--json", "print JSON")


def run(args: argparse.Namespace) -> int:
    if args.what is not None and args.project is not None:
        raise UsageError(
            "a report is of one thing: of what is named, or of the project",
            mend=f"runyard report {args.what}, or runyard report --project {args.project}",
        )
    from runyard.report.files import check_output, write

    for target in args.output:
        check_output(target, args.plot)
    if args.plot and not args.output:
        raise UsageError("--plot is for pictures", mend="name one: -o convergence.png")
    # What can be wrong with the words is said before anything is asked or started.
    from runyard.actions.results.reports import report_on

    words = args.what if args.project is None else f"project:{args.project}"
    report = report_on(server(), words)
    if report is None:
        say("no sweeps yet: `runyard sweep sweep.yaml` makes one; `runyard report JOB` and "
            "`--project NAME` report on others")  # fmt: skip
        return 0
    for target in args.output:
        for written in write(report, target, args.plot):
            say(f"wrote {written}")
    if args.json:
        print_json(report.to_json())
    elif not args.output:
        _print(report)
    return 0


def _print(report: Report) -> None:
    import os
    import shutil
    import sys

    from runyard.report.forms.text import WIDTH, text

    is_terminal = sys.stdout.isatty()
    columns = shutil.get_terminal_size((WIDTH, 24)).columns if is_terminal else WIDTH
    plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    shown = text(report, max(60, min(columns, 120)), bold=is_terminal and not plain)
    # It is printable, but for its own headings.
    print(shown, end="", file=unfiltered(sys.stdout))


def _complete(prefix: str, **_: object) -> list[str]:
    return [*complete_sweep(prefix), *complete_job(prefix), *complete_project(prefix)]
