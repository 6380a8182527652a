"""Run a program on this machine, on this terminal, and track it."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.actions.connect import open_server
from runyard.actions.events import Notice, Notify
from runyard.actions.owner import RULE, Owner, find_owner, is_name
from runyard.actions.tracking import ProjectOptions, other_server
from runyard.client.api import Api
from runyard.client.http import Unreachable
from runyard.client.roots import trust_of
from runyard.client.wandb_variables import FOREIGN_SERVICE, wandb_variables
from runyard.errors import RunyardError, StateError, UsageError
from runyard.home import Home, locate, read_discovery, using
from runyard.reading.units import duration
from runyard.save_protocol import COURSES, courses_folder
from runyard.shapes.runs import NewRun, Run
from runyard.vocabulary import ID_LETTERS

if TYPE_CHECKING:
    from runyard.node.attempt.foreground import Program
    from runyard.node.link.relay import Door


@dataclass(frozen=True)
class RunRequest:
    """A program, and under what its run is kept; what is not said is the shell's (WANDB_NAME)."""

    command: Sequence[str]
    options: ProjectOptions = field(default_factory=ProjectOptions)
    name: str | None = None
    group: str | None = None
    notes: str | None = None
    tags: Sequence[str] = ()
    quiet: bool = False
    """Tell nothing but what goes wrong."""


def project_command(options: ProjectOptions) -> list[str]:
    """The project's command, if it has one: it runs in the project's root, and its variables are
    this machine's here."""
    from runyard.config.project_file import read_project

    request = read_project(Path.cwd(), options.flags, needs_command=True)
    if request.command is None:
        return []
    os.chdir(request.folder)
    return [os.path.expandvars(word) for word in request.command]


@dataclass(frozen=True)
class Ran:
    """The program has ended; `program.end_likewise` ends its caller in the same way."""

    run_id: str
    exit_code: int
    program: Program


def run(request: RunRequest, notify: Notify) -> Ran:
    from runyard.node.attempt.foreground import Program
    from runyard.node.attempt.records import Record
    from runyard.node.attempt.run_attempt import run_attempt
    from runyard.node.attempt.run_delivery import RunDelivery
    from runyard.node.link.relay import Door

    home = locate()
    owner = find_owner(request.options, _current_folder())
    new = _new_run(request, owner)
    elsewhere = other_server(request.options, notify)
    try:
        api = open_server(notify, home, quiet=request.quiet)
        made = api.create_run(new)
    except Unreachable as error:
        return _run_offline(home, new, owner, request, error, elsewhere, notify)
    if not request.quiet:
        notify(Notice(f"run {made['id']} ({made['name']})"))
    with using(home):
        door = None
        if elsewhere is None:
            door = Door(str(home.path))
            door.open()  # Before any thread is started: it is a fork of ours.
        environ = _variables(home, api, made, owner, request, elsewhere, door)
        program = Program(list(request.command))
        record = Record(
            f"{home.spool}/{made['id']}-{secrets.token_hex(4)}.json", {}, survives_machine=True
        )
        delivery = RunDelivery(api, made, str(home.path))
        outcome = run_attempt(program, record, environ, delivery, door)
    if not request.quiet:
        run_id = made["id"] if outcome.run is None else outcome.run["id"]
        notify(_end(outcome.run, run_id, outcome.exit_code, outcome.seconds))
    if outcome.run is None:
        if elsewhere is None and "WANDB_DIR" not in os.environ:
            _note_owed(home, made, list(request.command), environ)
        trouble = outcome.delivery_trouble
        notify(
            Notice(
                f"the end of run {made['id']} could not be delivered yet"
                f"{f': {trouble}' if trouble else ''}; it is kept in {home.spool}, and the "
                "next server takes it in"
            )
        )
    if outcome.console_trouble is not None:
        notify(Notice(f"not all of the console was recorded: {outcome.console_trouble}"))
    return Ran(made["id"], outcome.exit_code, program)


def _run_offline(
    home: Home,
    new: NewRun,
    owner: Owner,
    request: RunRequest,
    error: Unreachable,
    elsewhere: dict[str, str] | None,
    notify: Notify,
) -> Ran:
    """The server cannot be reached from here: record on disk, and bring it in when it can be."""
    from runyard.actions.tidying.sync import sync_owed
    from runyard.node.attempt.foreground import Program
    from runyard.node.attempt.offline import offline_variables, run_offline

    place = f"run {new['id']} is recorded in {home.path} and brought in later"
    notify(Notice(f"{error.what}; {place}"))
    with using(home):
        folder = home.runs / new["id"]
        environ = _around(request, owner)
        environ |= offline_variables(new, folder)
        environ.setdefault(COURSES, courses_folder(str(home.path), new["project"]))
        if elsewhere is not None:  # Another server is not ours to be offline for.
            environ = {**_around(request, owner), **elsewhere}
        program = Program(new["command"])
        outcome = run_offline(program, new, home.spool, folder, environ)
    if not request.quiet:
        notify(_end(None, new["id"], outcome.exit_code, outcome.seconds))
    try:
        if new["id"] in sync_owed(home, open_server(notify, home, quiet=True, sync=False)):
            notify(Notice(f"run {new['id']} is in after all"))
    except RunyardError:
        notify(Notice("`runyard sync` brings it in from a machine that reaches the server"))
    return Ran(new["id"], outcome.exit_code, program)


def _note_owed(home: Home, made: Run, command: list[str], environ: dict[str, str]) -> None:
    """The server went away for good while the client was sending: some of it may be missing."""
    from runyard.client.owed import Owed, write_owed
    from runyard.node.attempt.offline import find_interpreter

    with contextlib.suppress(OSError):
        write_owed(
            home.runs / made["id"],
            Owed(
                run=made["id"],
                project=made["project"],
                entity=made["entity"],
                python=find_interpreter(command, environ),
                online=True,
                ended_at=time.time(),
            ),
        )


def _new_run(request: RunRequest, owner: Owner) -> NewRun:
    new_id = "".join(secrets.choice(ID_LETTERS) for _ in range(8))
    tags = request.tags or os.environ.get("WANDB_TAGS", "").split(",")
    return {
        "id": _checked("run id", os.environ.get("WANDB_RUN_ID") or new_id),
        "project": _checked("project", owner.project),
        "entity": owner.entity,
        "is_place_named": owner.named is not None or owner.entity is not None,
        "name": one_line(request.name or os.environ.get("WANDB_NAME") or "") or None,
        "group": one_line(request.group or os.environ.get("WANDB_RUN_GROUP") or "") or None,
        "notes": _text(request.notes or os.environ.get("WANDB_NOTES") or "") or None,
        "tags": [_text(tag) for tag in tags if tag],
        "command": [_text(word) for word in request.command],
        "folder": _text(str(_current_folder())),
        "host": socket.gethostname(),
    }


def _checked(kind: str, name: str) -> str:
    if not is_name(name):
        shown = name if len(name) < 40 else f"{name[:40]}..."
        raise UsageError(
            f"a {kind} cannot be {shown!r}",
            mend=RULE,
        )
    return _text(name)


def _text(word: str) -> str:
    """A word of the command line or a path, which may hold any bytes, as text."""
    return os.fsencode(word).decode("utf-8", errors="replace")


def one_line(words: str) -> str:
    """A name, which stands in tables: in one line."""
    return " ".join("".join(char if char.isprintable() else " " for char in _text(words)).split())


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise StateError(
            "the folder in which this was typed is gone", said=error.strerror, mend="cd elsewhere"
        ) from error


def _variables(
    home: Home,
    api: Api,
    made: Run,
    owner: Owner,
    request: RunRequest,
    elsewhere: dict[str, str] | None,
    door: Door | None,
) -> dict[str, str]:
    discovery = read_discovery(home)
    assert discovery is not None
    environ = _around(request, owner)
    environ.setdefault(COURSES, courses_folder(str(home.path), made["project"]))
    if elsewhere is not None or door is None:
        # The run is that server's: of ours it gets nothing but what the user typed.
        return {**environ, **(elsewhere or {})}
    label = f"run {made['name'] or made['id']}"
    key = api.people.add_key(label, kind="run", run=made["key"])["key"]
    environ.update(wandb_variables(door.url, key, environ))
    environ.update(trust_of(home, discovery, environ))
    environ.update(
        {
            # Links that a client prints lead to the server itself, or to where people come in.
            "WANDB_APP_URL": discovery.public_url or discovery.url,
            "WANDB_RUN_ID": made["id"],
            "WANDB_RESUME": "allow",
            "WANDB_PROJECT": made["project"],
            "WANDB_ENTITY": made["entity"],
        }
    )
    if "WANDB_DIR" not in os.environ:
        folder = home.runs / made["id"]
        folder.mkdir(mode=0o700, exist_ok=True)
        environ["WANDB_DIR"] = str(folder)
    return environ


def _around(request: RunRequest, owner: Owner) -> dict[str, str]:
    """What the program finds around it, wherever it logs to: what is said of the run, too."""
    variables = {
        "WANDB_PROJECT": owner.named,
        "WANDB_NAME": request.name,
        "WANDB_RUN_GROUP": request.group,
        "WANDB_NOTES": request.notes,
        "WANDB_TAGS": ",".join(request.tags),
    }
    environ = {**os.environ, **{name: value for name, value in variables.items() if value}}
    environ.pop(FOREIGN_SERVICE, None)
    # Lines show up in the console when they are printed, also where it is no terminal.
    environ.setdefault("PYTHONUNBUFFERED", "1")
    return environ


def _end(ended: Run | None, run_id: str, exit_code: int, seconds: float) -> Notice:
    state = ended["state"] if ended else "ended"
    how = f"exit code {exit_code}" if exit_code >= 0 else f"signal {-exit_code}"
    return Notice(
        f"run {run_id} {state} after {duration(seconds)} ({how}); `runyard show {run_id}`"
    )
