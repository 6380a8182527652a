"""Run a program as a job of the cluster: one command, or one for each seed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from runyard.actions.connect import open_server
from runyard.actions.events import Notice, Notify
from runyard.actions.naming import find_sweep
from runyard.actions.submitting.submission import ClusterOptions, Outcome
from runyard.actions.sweeping.agents import AgentsRequest, add_agents_on_cluster
from runyard.actions.sweeping.slots import Slots
from runyard.actions.sweeping.sweep import submit_sweep
from runyard.actions.sweeping.sweep_plan import SweepSource, make_plan
from runyard.actions.sweeping.task_lists import ListRequest, repeated, submit_list
from runyard.actions.tracking import ProjectOptions
from runyard.actions.trying.program_checks import check_plan, check_tasks
from runyard.config.flags import Flags, flag
from runyard.errors import UsageError

_KEY = re.compile(
    r"(?i)(wandb_api_key=\S+|--?[\w-]*(api[_-]?key|token|secret|password)[=\s]\S{8,})"
)


@dataclass(frozen=True)
class SubmitRequest:
    """A command, and what it is given; ${NAME} in it is a variable of the node."""

    command: Sequence[str]
    folder: Path
    options: ProjectOptions = field(default_factory=ProjectOptions)
    name: str | None = None
    seeds: Sequence[int] | None = None
    """A trial for each."""
    slots: int = 1
    retries: int | None = None
    metric: str | None = None
    goal: str = "minimize"
    warm: Sequence[str] = ()
    checks_program: bool = True
    """Refuse a program that is not there, or does not know an option that it is given."""
    cluster: ClusterOptions = field(default_factory=ClusterOptions)


def submit(request: SubmitRequest, notify: Notify) -> Outcome:
    """The command as a list of command lines, whose agents are jobs."""
    kind = "repeat" if request.seeds else "run"
    return submit_list(list_of(request, notify), kind, request.cluster, notify)


def submit_project(request: SubmitRequest, notify: Notify) -> Outcome:
    """What runyard.yaml says is to be run, in the project's root, in place of the command."""
    from runyard.config.project_file import read_project

    options, cluster = request.options, request.cluster
    project = read_project(request.folder, options.flags, needs_command=True)
    file = project.origins.get("command_file", "")
    if Path(file).is_absolute():  # The usual one: the plan is to read it too.
        flags = {**options.flags.given, "command_file": flag("command_file", [file])}
        options = replace(options, flags=Flags(flags))
    if project.sweep_id is not None:
        sweep = find_sweep(open_server(notify), project.sweep_id)
        wanted = AgentsRequest(sweep, Slots(request.slots), options)
        return add_agents_on_cluster(wanted, cluster, notify)
    if project.command is not None:
        notify(Notice(f"the command is that of {file or 'runyard.yaml'}"))
        command = replace(request, command=project.command, folder=project.folder, options=options)
        return submit(command, notify)
    if project.sweep_file is not None:
        source = SweepSource(str(project.folder / project.sweep_file), options=options)
        plan = make_plan(source, notify)
        if request.checks_program:
            check_plan(plan, notify)
        return submit_sweep(plan, options.flags, request.slots, (), cluster, notify)
    raise UsageError(
        "runyard submit: which program?",
        mend="runyard submit -- python train.py; or write command: or sweep: into runyard.yaml, or "
        "the command into experiment_configurations.txt",
    )


def list_of(request: SubmitRequest, notify: Notify) -> ListRequest:
    """The list that the command is, checked before anything is made."""
    from runyard.config.task_list import Line, make_tasks

    refuse_keys(request.command)
    seeds, flags = request.seeds, request.options.flags
    commands = [list(request.command)] if seeds is None else repeated(request.command, seeds)
    lines = [Line(place, node_line(words)) for place, words in enumerate(commands, start=1)]
    tasks, name = make_tasks("submit", lines), request.name or flags["name"]
    if seeds is not None:
        tasks = tasks.with_seeds(seeds)
    else:
        tasks = tasks.renamed(name or Path(request.command[0]).name)
    if request.checks_program:
        check_tasks(tasks, request.folder, notify)
    options = replace(
        request.options,
        project=request.options.project or flags["tracking.project"],
        entity=flags["tracking.entity"],
    )
    return ListRequest(
        tasks,
        request.folder,
        options,
        Slots(request.slots),
        name,
        request.retries,
        request.metric,
        request.goal,
        warm=request.warm,
    )


def node_line(words: Sequence[str]) -> str:
    """Words for the node's shell: exactly these, but for ${NAME}, which is a variable there."""
    return " ".join(
        _expanded(word) if re.search(r"\$\{\w+\}", word) else shlex.quote(word) for word in words
    )


def _expanded(word: str) -> str:
    escaped = re.sub(r'(["\\`]|\$(?!\{\w+\}))', r"\\\1", word)
    return f'"{escaped}"'


def refuse_keys(words: Sequence[str]) -> None:
    """A key in a command line is read by everybody who types `ps` on its node."""
    secret = _KEY.search(" ".join(words))
    if secret is not None and "${" not in secret[0]:
        name = re.split(r"[=\s]", secret[0])[0]
        raise UsageError(
            f"the command has what looks like a secret behind {name}: anybody on the node could "
            "read it, and it would be stored with the run",
            mend="programs find wandb's key by themselves (`runyard login`); let them read others "
            "from a file that only you can read",
        )
