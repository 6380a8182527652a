"""Run a trial or a run once more: the same command and values, as a new run."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
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


def once_more(api: Api, run: RunDetail, options: ProjectOptions, slots: Slots) -> ListRequest:
    """Its command as a list of one, under a new name, in its project and its folder."""
    line = Line(1, _line_again(api, run))
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


def command_line(
    api: Api, run: RunDetail, file_of: Callable[[str], str] = lambda _text: "values.json"
) -> str | None:
    """The words of its program, as a shell takes them; None if runyard did not start it.

    `file_of` returns the path of a file with a trial's values, for commands that ask for one.
    """
    if run["command"]:
        return shlex.join(run["command"])
    # A server from before does not tell the values.
    if run["trial"] is None or "values" not in run["trial"]:
        return None
    values = run["trial"]["values"]
    if COMMAND_LINE in values:
        return str(values[COMMAND_LINE])
    config = api.sweeps.sweep(run["trial"]["sweep"])["config"]
    words = expand(config.get("command"), config.get("program"), values, os.environ, file_of)
    return shlex.join(words)


def _line_again(api: Api, run: RunDetail) -> str:
    def no_file(_text: str) -> str:
        sweep = run["sweep"]["id"] if run["sweep"] else ""
        raise UsageError(
            f"trial {run['name']} is given its values in a file of its own",
            mend=f"`runyard retry {sweep} --trial {run['name']}` runs it if it failed",
        )

    line = command_line(api, run, no_file)
    if line is None:
        raise NotFoundError(
            f"it is not known how run {run['id']} was started",
            mend="only what runyard started can be run again: `runyard run -- python train.py`",
        )
    return line
