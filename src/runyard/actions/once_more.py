"""Run a trial or a run once more: the same command and values, as a new run."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path

from runyard.actions.sweeping.slots import Slots
from runyard.actions.sweeping.task_lists import ListRequest
from runyard.actions.tracking import ProjectOptions
from runyard.client.api import Api
from runyard.config.task_list import Line, make_tasks
from runyard.errors import NotFoundError, UsageError
from runyard.node.attempt.command_line import expand
from runyard.search.tasks import COMMAND_LINE
from runyard.shapes.runs import RunDetail
from runyard.shapes.sweeps import Sweep, Trial


def once_more(api: Api, run: RunDetail, options: ProjectOptions, slots: Slots) -> ListRequest:
    """Its command as a list of one, under a new name, in its project and its folder."""
    line = Line(1, _command_line(api, run))
    tasks = make_tasks(run["id"], [line]).renamed(f"{run['name']}_again")
    options = replace(
        options,
        project=options.project or run["project"],
        entity=options.entity or run["entity"],
    )
    return ListRequest(tasks, _folder(run), options, slots, options.flags["name"])


def _folder(run: RunDetail) -> Path:
    """Where it ran: a trial's own folder lies in there, under sweeps/SWEEP."""
    if run["folder"] is None:
        return Path.cwd()
    folder = Path(run["folder"])
    if folder.parent.parent.name == "sweeps":
        folder = folder.parent.parent.parent
    if not folder.is_dir():
        raise UsageError(
            f"run {run['id']} ran in {folder}, which is not there",
            mend="make the folder, or run its command elsewhere: `runyard show` has it",
        )
    return folder


def _command_line(api: Api, run: RunDetail) -> str:
    """What was executed, as a shell takes it."""
    if run["command"]:
        return shlex.join(run["command"])
    for sweep in api.sweeps.sweeps(project=f"{run['entity']}/{run['project']}"):
        for trial in api.sweeps.trials(sweep["key"]):
            if trial["id"] == run["id"]:
                return _trial_line(sweep, trial)
    raise NotFoundError(
        f"it is not known how run {run['id']} was started",
        mend="only what runyard started can be run again: `runyard run -- python train.py`",
    )


def _trial_line(sweep: Sweep, trial: Trial) -> str:
    if COMMAND_LINE in trial["values"]:
        return str(trial["values"][COMMAND_LINE])
    config = sweep["config"]

    def no_file(_text: str) -> str:
        raise UsageError(
            f"trial {trial['name']} is given its values in a file of its own",
            mend=f"`runyard retry {sweep['id']} --trial {trial['name']}` runs it if it failed",
        )

    words = expand(
        config.get("command"), config.get("program"), trial["values"], os.environ, no_file
    )
    return shlex.join(words)
