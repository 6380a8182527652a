"""Bring in runs that were recorded without the server.

  runyard sync               every run of the state folder that is owed
  runyard sync RUN ...       these: by id, or folders that a wandb client wrote

Where a node cannot reach the server, `runyard run` lets wandb record on disk. That is brought in at
the job's end if the server can be reached then, by the next command that starts the server, or by
this one. What is in is marked and not sent again; sending it twice would do no harm.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from runyard.cli.connect import server
from runyard.cli.letters import spelled
from runyard.cli.output import print_json
from runyard.client.api import Api
from runyard.client.environment import wandb_environment
from runyard.client.owed import Record, find_records
from runyard.client.roots import trust_of
from runyard.errors import NotFoundError, RunyardError
from runyard.home import Home, locate, read_discovery
from runyard.locks import FolderLock

_OPTIONS = ("--include-online", "--include-synced")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="*", metavar="RUN", help="a run's id, or a wandb folder")
    parser.add_argument("--all", action="store_true", help="every run that is owed (the default)")
    parser.add_argument("--again", action="store_true", help="also what was brought in before")
    parser.add_argument(*spelled("--quiet"), action="store_true", help="print only what goes wrong")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    home = locate()
    chosen = list(_choose(home, args.runs))
    todo = [record for record in chosen if args.again or not record.is_synced]
    if args.runs and not chosen:
        raise NotFoundError(
            f"nothing was recorded without the server for {', '.join(args.runs)}",
            mend="`runyard sync` without words takes all there is",
        )
    results = []
    if todo:
        with _key_of_its_own(server(home, sync=False)) as key:
            named = bool(args.runs)
            results = [_sync_told(home, record, key, args, named=named) for record in todo]
    if args.json:
        print_json(results)
    elif not results and not args.quiet:
        print("nothing to bring in")
    return 1 if any(result["state"] == "failed" for result in results) else 0


def _choose(home: Home, words: list[str]) -> Iterator[Record]:
    paths = [Path(word) for word in words if Path(word).is_dir()]
    ids = {word for word in words if not Path(word).is_dir()}
    for record in find_records(home, paths):
        inside = any(path.resolve() in (record.folder.resolve(), *record.folder.resolve().parents)
                     for path in paths)  # fmt: skip
        if not words or inside or record.run in ids:
            yield record


def _sync_told(
    home: Home, record: Record, key: str, args: argparse.Namespace, *, named: bool
) -> dict[str, Any]:
    result: dict[str, Any] = {"run": record.run, "folder": str(record.folder)}
    if record.is_alive and not named:
        result |= {"state": "running"}
        words = f"{record.run} may still be running: left for later"
    else:
        trouble = sync_record(home, record, key)
        result |= {"state": "failed", "said": trouble} if trouble else {"state": "synced"}
        words = f"{record.run} failed: {trouble}" if trouble else f"{record.run} is in"
    if not args.json and (not args.quiet or result["state"] == "failed"):
        print(words, flush=True)
    return result


def sync_owed(home: Home, api: Api) -> list[str]:
    """Bring in all that is owed and finished; says which runs are in."""
    with _key_of_its_own(api) as key:
        return [
            record.run
            for record in find_records(home)
            if not record.is_synced
            and not record.is_alive
            and sync_record(home, record, key) is None
        ]


@contextlib.contextmanager
def _key_of_its_own(api: Api) -> Iterator[str]:
    """For the clients that send what was recorded, and for no longer than they do."""
    made = api.people.add_key(f"sync on {socket.gethostname()}", kind="run")
    try:
        yield made["key"]
    finally:
        with contextlib.suppress(RunyardError):
            api.people.revoke_key(made)


def sync_record(home: Home, record: Record, key: str) -> str | None:
    """Send one record to our server with the client that is at hand; says what went wrong."""
    discovery = read_discovery(home)
    assert discovery is not None
    # Beside the record, and never two at once: a job's end and a command may meet here.
    with FolderLock(record.folder / ".runyard-sync") as lock:
        if not lock.acquire(timeout=300):
            return "another command is bringing it in"
        last = "no Python with wandb was found"
        for command in _clients(record):
            environment = {
                name: value for name, value in os.environ.items() if not name.startswith("WANDB_")
            }
            environment |= wandb_environment(discovery.url, key, environment)
            environment |= trust_of(home, discovery, environment)
            try:
                done = subprocess.run(
                    [*command, "sync", *_OPTIONS, *_whose(record), str(record.folder)],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    check=False,
                )
            except OSError as error:
                last = str(error)
                continue
            said = (done.stdout + done.stderr).strip()
            # Some versions end with 0 whatever happens; all mark what they have sent.
            if done.returncode == 0 and any(record.folder.glob("*.synced")):
                record.mark_synced()
                return None
            last = said.splitlines()[-1] if said else f"wandb sync ended with {done.returncode}"
    return last


def _whose(record: Record) -> list[str]:
    """Of what was logged to another server: whose run it is here."""
    note = record.note
    if note is None or not note.elsewhere:
        return []
    return ["--entity", note.entity or "", "--project", note.project or "", "--id", note.run]


def _clients(record: Record) -> Iterable[list[str]]:
    """Commands that may be a wandb client: first the one that wrote the record."""
    pythons = dict.fromkeys(filter(None, (record.python, sys.executable, shutil.which("python3"))))
    on_path = shutil.which("wandb")
    commands = [[python, "-m", "wandb"] for python in pythons]
    return [commands[0], *([[on_path]] if on_path else []), *commands[1:]]
