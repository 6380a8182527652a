"""Run a trial or a run once more: the same command and values, as a new run."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from runyard.actions.naming import find_run
from runyard.client.api import Api, RunDetail
from runyard.client.sweeps import Sweep, Trial
from runyard.config.task_list import Line, TaskList, make_tasks
from runyard.errors import NotFoundError, UsageError
from runyard.node.attempt.command_line import expand
from runyard.search.tasks import COMMAND_LINE


@dataclass(frozen=True)
class OnceMore:
    """What ran, as a list of one line."""

    run: RunDetail
    tasks: TaskList

    @property
    def folder(self) -> Path:
        """Where it ran: a trial's own folder lies in there, under sweeps/SWEEP."""
        if self.run["folder"] is None:
            return Path.cwd()
        folder = Path(self.run["folder"])
        if folder.parent.parent.name == "sweeps":
            folder = folder.parent.parent.parent
        if not folder.is_dir():
            raise UsageError(
                f"run {self.run['id']} ran in {folder}, which is not there",
                mend="make the folder, or run elsewhere what --dry-run shows",
            )
        return folder


def once_more(api: Api, words: str) -> OnceMore:
    """The run that is meant, and its command under a new name."""
    run = find_run(api, words)
    tasks = make_tasks(run["id"], [Line(1, _command_line(api, run))])
    return OnceMore(run, tasks.renamed(f"{run['name']}_again"))


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
