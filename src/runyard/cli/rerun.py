"""Run a trial or a run once more: the same command and values, as a new run.

  runyard rerun a1b2c3d4             here, in the folder in which it ran
  runyard rerun a1b2c3d4 --dry-run   what would run, and where

RUN is an id, the beginning of one, a name, or PROJECT/any of these. It runs here, in the folder in
which it ran; what it was is left as it is.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from runyard.actions.naming import find_run
from runyard.cli.completers import complete_run
from runyard.cli.connect import server
from runyard.cli.farm import add_work_arguments, preview, start
from runyard.client.api import Api, RunDetail
from runyard.errors import NotFoundError, UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_argument("run", metavar="RUN", help="which run, or trial of a sweep")
    which.completer = complete_run  # type: ignore[attr-defined]
    add_work_arguments(parser)
    parser.add_argument("--dry-run", action="store_true", help="show the command; run nothing")


def run(args: argparse.Namespace) -> int:
    from runyard.config.task_list import Line, make_tasks

    api = server()
    found = find_run(api, args.run)
    line = command_line(api, found)
    tasks = make_tasks(found["id"], [Line(1, line)]).renamed(f"{found['name']}_again")
    if args.dry_run:
        preview(tasks, as_json=args.json)
        return 0
    args.project = args.project or found["project"]
    args.entity = args.entity or found["entity"]
    return start(args, tasks, folder=_folder(found))


def command_line(api: Api, found: RunDetail) -> str:
    """What was executed, as a shell takes it."""
    if found["command"]:
        return shlex.join(found["command"])
    for sweep in api.sweeps.sweeps(project=f"{found['entity']}/{found['project']}"):
        for trial in api.sweeps.trials(sweep["key"]):
            if trial["id"] == found["id"]:
                from runyard.cli.trial_command import trial_words

                return trial_words(sweep, trial)
    raise NotFoundError(
        f"it is not known how run {found['id']} was started",
        mend="only what runyard started can be run again: `runyard run -- python train.py`",
    )


def _folder(found: RunDetail) -> Path:
    """Where it ran: a trial's own folder lies in there, under sweeps/SWEEP."""
    if found["folder"] is None:
        return Path.cwd()
    folder = Path(found["folder"])
    if folder.parent.parent.name == "sweeps":
        folder = folder.parent.parent.parent
    if not folder.is_dir():
        raise UsageError(
            f"run {found['id']} ran in {folder}, which is not there",
            mend="make the folder, or run elsewhere what --dry-run shows",
        )
    return folder
