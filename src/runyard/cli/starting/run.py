"""Run a program on this machine and track it.

  runyard run -- python train.py --lr 0.1
  runyard run -e baseline --tag paper -- python train.py    a name, and a tag to find it by
  runyard run                                            the command of runyard.yaml
  runyard run --tracking cloud -- python train.py        its wandb calls go to W&B's cloud

The program's own, unmodified wandb calls log to runyard's server; a program without any is
recorded too: its command, its console, how long it took and how it ended. The exit code is the
program's own; 127 where there is no such program, 126 where it cannot be run, 125 where runyard
itself failed before it began.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.actions.owner import RULE, find_owner, is_name
from runyard.actions.tracking import other_server
from runyard.cli.connect import server
from runyard.cli.letters import spelled
from runyard.cli.output import duration, say, show
from runyard.cli.project_options import add_tracking, project_options
from runyard.cli.slurm_options import add_slurm_arguments, refuse_slurm_options
from runyard.client.api import Api, NewRun, Run
from runyard.client.environment import FOREIGN_SERVICE, wandb_environment
from runyard.client.http import Unreachable
from runyard.client.roots import trust_of
from runyard.errors import ProgramError, RunyardError, StateError, UsageError
from runyard.home import Home, locate, read_discovery, using
from runyard.schedulers.choice import has_queue
from runyard.train.courses import VARIABLE as COURSES
from runyard.train.courses import courses_folder

if TYPE_CHECKING:
    from runyard.node.link.relay import Door

_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard run [options] [--] PROGRAM [ARGUMENTS ...]"
    parser.add_argument(
        *spelled("--project"), help="project (default: runyard.yaml's, or this folder's name)"
    )
    parser.add_argument(
        *spelled("--name"), help="name of the run (default: two words and a number)"
    )
    parser.add_argument("--tag", action="append", default=[], help="tag; may be repeated")
    parser.add_argument("--group", help="group of runs to which it belongs")
    parser.add_argument("--notes", help="a sentence about it")
    parser.add_argument(
        *spelled("--quiet"), action="store_true", help="print nothing but the program's"
    )
    parser.add_argument("--no-check", action="store_true",
                        help="with --on slurm: submit it even if the program is not here, or does "
                        "not know an option")  # fmt: skip
    parser.add_argument("--dry-run", action="store_true",
                        help="with --on slurm: show what would be sent")  # fmt: skip
    add_tracking(parser)
    add_slurm_arguments(parser)
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="PROGRAM",
                        help="the program; all that follows is its own")  # fmt: skip
    parser.set_defaults(parser=parser)


def run(args: argparse.Namespace) -> int:
    refuse_slurm_options(args)
    behind_dashes = args.program[:1] == ["--"]
    command = (args.program[1:] if behind_dashes else args.program) or _of_project(args)
    if not command:
        raise UsageError(
            "runyard run: which program?",
            mend="runyard run -- python train.py --lr 0.1; or write command: into runyard.yaml, or "
            "the command into experiment_configurations.txt",
        )
    if command[0].startswith("-") and not behind_dashes:
        args.parser.refuse_unknown(command)
    if has_queue(args.on):
        from runyard.cli.starting.submit import submit_command

        return submit_command(args, command)
    if args.dry_run:
        raise UsageError("--dry-run is for --on slurm", mend="add --on slurm, or leave it out")
    try:
        return _run(args, command)
    except (ProgramError, UsageError):
        raise
    except RunyardError as error:
        # 125, as `env` and `timeout` have it: not the program's own code, we failed before it.
        raise ProgramError(error.what, exit_code=125, said=error.said, mend=error.mend) from error


def _of_project(args: argparse.Namespace) -> list[str]:
    """The project's command, if it has one: it runs in the project's root, and its variables are
    this machine's here."""
    from runyard.cli.resource_flags import given_flags
    from runyard.config.project_file import read_project

    request = read_project(Path.cwd(), given_flags(args), needs_command=True)
    if request.command is None:
        return []
    os.chdir(request.folder)
    return [os.path.expandvars(word) for word in request.command]


def _run(args: argparse.Namespace, command: list[str]) -> int:
    from runyard.node.attempt.foreground import Program
    from runyard.node.attempt.records import Record
    from runyard.node.attempt.run_attempt import run_attempt
    from runyard.node.attempt.run_delivery import RunDelivery
    from runyard.node.link.relay import Door

    home = locate()
    new = _new_run(args, command)
    elsewhere = other_server(project_options(args), show)
    try:
        api = server(home, quiet=args.quiet)
        made = api.create_run(new)
    except Unreachable as error:
        return _run_offline(home, new, args, error, elsewhere)
    if not args.quiet:
        say(f"run {made['id']} ({made['name']})")
    with using(home):
        door = None
        if elsewhere is None:
            door = Door(str(home.path))
            door.open()  # Before any thread is started: it is a fork of ours.
        environment = _environment(home, api, made, args, elsewhere, door)
        program = Program(command)
        record = Record(
            f"{home.spool}/{made['id']}-{secrets.token_hex(4)}.json", {}, survives_machine=True
        )
        delivery = RunDelivery(api, made, str(home.path))
        outcome = run_attempt(program, record, environment, delivery, door)
    if not args.quiet:
        _tell_end(outcome.run, made["id"], outcome.exit_code, outcome.seconds)
    if outcome.run is None:
        if elsewhere is None and "WANDB_DIR" not in os.environ:
            _note_owed(home, made, command, environment)
        trouble = outcome.delivery_trouble
        say(
            f"the end of run {made['id']} could not be delivered yet"
            f"{f': {trouble}' if trouble else ''}; it is kept in {home.spool}, and the next "
            "server takes it in"
        )
    if outcome.console_trouble is not None:
        say(f"not all of the console was recorded: {outcome.console_trouble}")
    sys.stdout.flush()
    sys.stderr.flush()
    return program.end_likewise(outcome.exit_code)


def _run_offline(
    home: Home,
    new: NewRun,
    args: argparse.Namespace,
    error: Unreachable,
    elsewhere: dict[str, str] | None,
) -> int:
    """The server cannot be reached from here: record on disk, and bring it in when it can be."""
    from runyard.actions.tidying.sync import sync_owed
    from runyard.node.attempt.foreground import Program
    from runyard.node.attempt.offline import offline_environment, run_offline

    say(f"{error.what}; run {new['id']} is recorded in {home.path} and brought in later")
    with using(home):
        folder = home.runs / new["id"]
        environment = _around(args)
        environment |= offline_environment(new, folder)
        environment.setdefault(COURSES, courses_folder(str(home.path), new["project"]))
        if elsewhere is not None:  # Another server is not ours to be offline for.
            environment = {**_around(args), **elsewhere}
        program = Program(new["command"])
        outcome = run_offline(program, new, home.spool, folder, environment)
    if not args.quiet:
        _tell_end(None, new["id"], outcome.exit_code, outcome.seconds)
    try:
        if new["id"] in sync_owed(home, server(home, quiet=True, sync=False)):
            say(f"run {new['id']} is in after all")
    except RunyardError:
        say("`runyard sync` brings it in from a machine that reaches the server")
    sys.stdout.flush()
    sys.stderr.flush()
    return program.end_likewise(outcome.exit_code)


def _note_owed(home: Home, made: Run, command: list[str], environment: dict[str, str]) -> None:
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
                python=find_interpreter(command, environment),
                online=True,
                ended_at=time.time(),
            ),
        )


def _new_run(args: argparse.Namespace, command: list[str]) -> NewRun:
    folder = _current_folder()
    new_id = "".join(secrets.choice(_ALPHABET) for _ in range(8))
    owner = find_owner(project_options(args), folder)
    args.project = owner.named
    return {
        "id": _checked("run id", os.environ.get("WANDB_RUN_ID") or new_id),
        "project": _checked("project", owner.project),
        "entity": owner.entity,
        "is_place_named": owner.named is not None or owner.entity is not None,
        "name": _line(args.name or os.environ.get("WANDB_NAME") or "") or None,
        "group": _line(args.group or os.environ.get("WANDB_RUN_GROUP") or "") or None,
        "notes": _text(args.notes or os.environ.get("WANDB_NOTES") or "") or None,
        "tags": [
            _text(tag) for tag in args.tag or os.environ.get("WANDB_TAGS", "").split(",") if tag
        ],
        "command": [_text(word) for word in command],
        "folder": _text(str(folder)),
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


def _line(words: str) -> str:
    """A name, which stands in tables: in one line."""
    return " ".join("".join(one if one.isprintable() else " " for one in _text(words)).split())


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise StateError(
            "the folder in which this was typed is gone", said=error.strerror, mend="cd elsewhere"
        ) from error


def _environment(
    home: Home,
    api: Api,
    made: Run,
    args: argparse.Namespace,
    elsewhere: dict[str, str] | None,
    door: Door | None,
) -> dict[str, str]:
    discovery = read_discovery(home)
    assert discovery is not None
    environment = _around(args)
    environment.setdefault(COURSES, courses_folder(str(home.path), made["project"]))
    if elsewhere is not None or door is None:
        # The run is that server's: of ours it gets nothing but what the user typed.
        return {**environment, **(elsewhere or {})}
    label = f"run {made['name'] or made['id']}"
    key = api.people.add_key(label, kind="run", run=made["key"])["key"]
    environment.update(wandb_environment(door.url, key, environment))
    environment.update(trust_of(home, discovery, environment))
    environment.update(
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
        environment["WANDB_DIR"] = str(folder)
    return environment


def _around(args: argparse.Namespace) -> dict[str, str]:
    """What the program finds around it, wherever it logs to."""
    environment = {**os.environ, **_named(args)}
    environment.pop(FOREIGN_SERVICE, None)
    # Lines show up in the console when they are printed, also where it is no terminal.
    environment.setdefault("PYTHONUNBUFFERED", "1")
    return environment


def _named(args: argparse.Namespace) -> dict[str, str]:
    """What the command line says of the run, for the client."""
    given = {
        "WANDB_PROJECT": args.project,
        "WANDB_NAME": args.name,
        "WANDB_RUN_GROUP": args.group,
        "WANDB_NOTES": args.notes,
        "WANDB_TAGS": ",".join(args.tag),
    }
    return {name: value for name, value in given.items() if value}


def _tell_end(ended: Run | None, run_id: str, exit_code: int, seconds: float) -> None:
    state = ended["state"] if ended else "ended"
    how = f"exit code {exit_code}" if exit_code >= 0 else f"signal {-exit_code}"
    say(f"run {run_id} {state} after {duration(seconds)} ({how}); `runyard show {run_id}`")
