"""Bring in runs that were recorded without the server."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runyard.client.api import Api
from runyard.client.client_log import copy_complete, is_complete, read_log
from runyard.client.owed import Record, find_records
from runyard.client.roots import trust_of
from runyard.client.wandb_variables import wandb_variables
from runyard.errors import NotFoundError, RunyardError
from runyard.home import Home, read_discovery
from runyard.locks import FolderLock

_OPTIONS = ("--include-online", "--include-synced")
# 0.16 may name the port of its service before it listens there; the next start is likely to work.
_START_FAILED = "Connection to wandb service failed"
_STARTS = 3


@dataclass(frozen=True)
class Synced:
    """`state`: synced, failed (`said` has why), running, and left for later, or empty.

    Empty is what a client leaves that was killed before it had written a whole record. `said` also
    tells that the record's own Python was not run.
    """

    run: str
    folder: Path
    state: str
    said: str | None = None

    def to_json(self) -> dict[str, str]:
        fields = {"run": self.run, "folder": str(self.folder), "state": self.state}
        return {**fields, "said": self.said} if self.said else fields

    def in_words(self) -> str:
        if self.state == "running":
            return f"{self.run} may still be running: left for later"
        if self.state == "empty":
            return f"{self.run} was killed before it had recorded anything: {self.folder}"
        if self.state == "failed":
            return f"{self.run} failed: {self.said}"
        return f"{self.run} is in ({self.said})" if self.said else f"{self.run} is in"


def sync(
    home: Home, words: Sequence[str], connect: Callable[[], Api], *, again: bool = False
) -> Iterator[Synced]:
    """One after the other: all that is owed, or what is named by ids and folders.

    `connect` gives the server, which is not asked for where there is nothing to send.
    """
    chosen = list(_choose(home, words))
    todo = [record for record in chosen if again or not record.is_synced]
    if words and not chosen:
        raise NotFoundError(
            f"nothing was recorded without the server for {', '.join(words)}",
            mend="`runyard sync` without words takes all there is",
        )
    if not todo:
        return
    with _key_of_its_own(connect()) as key:
        for record in todo:
            if record.is_alive and not words:
                yield Synced(record.run, record.folder, "running")
                continue
            if _is_empty(record):
                yield Synced(record.run, record.folder, "empty")
                continue
            trouble = sync_record(home, record, key)
            said = "; ".join(filter(None, (trouble, _python_not_run(record)))) or None
            yield Synced(record.run, record.folder, "failed" if trouble else "synced", said)


def _python_not_run(record: Record) -> str | None:
    named = record.named_python
    if named is None or named.refusal is None:
        return None
    return (
        f"the Python that it names, {named.path}, was not run: {named.refusal}; "
        "only this command's Python and those on the PATH were"
    )


def _choose(home: Home, words: Sequence[str]) -> Iterator[Record]:
    paths = [Path(word) for word in words if Path(word).is_dir()]
    ids = {word for word in words if not Path(word).is_dir()}
    for record in find_records(home, paths):
        inside = any(path.resolve() in (record.folder.resolve(), *record.folder.resolve().parents)
                     for path in paths)  # fmt: skip
        if not words or inside or record.run in ids:
            yield record


def sync_owed(home: Home, api: Api) -> list[str]:
    """Bring in all that is owed and finished; says which runs are in."""
    with _key_of_its_own(api) as key:
        return [
            record.run
            for record in find_records(home)
            if not record.is_synced
            and not record.is_alive
            and not _is_empty(record)
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
    # Beside the record, and never two at once: a job's end and a command may meet here.
    with FolderLock(record.folder / ".runyard-sync") as lock:
        if not lock.acquire(timeout=300):
            return "another command is bringing it in"
        with _whole_log(record) as folder:
            return _send(home, record, key, folder)


def _send(home: Home, record: Record, key: str, folder: Path) -> str | None:
    discovery = read_discovery(home)
    assert discovery is not None
    last = "no Python with wandb was found"
    for command in _clients(record):
        environ = {
            name: value for name, value in os.environ.items() if not name.startswith("WANDB_")
        }
        environ |= wandb_variables(discovery.url, key, environ)
        environ |= trust_of(home, discovery, environ)
        words = [*command, "sync", *_OPTIONS, *_whose(record), str(folder.absolute())]
        try:
            for _ in range(_STARTS):
                code, output = _call(words, environ)
                if _START_FAILED not in output:
                    break
        except OSError as error:
            last = str(error)
            continue
        # Some versions end with 0 whatever happens; all mark what they have sent.
        if code == 0 and any(folder.glob("*.synced")):
            for mark in () if record.is_alive else folder.glob("*.synced"):
                (record.folder / mark.name).touch()
            record.mark_synced()
            return None
        last = output.splitlines()[-1] if output else f"wandb sync ended with {code}"
    return last


def _call(words: Sequence[str], environ: Mapping[str, str]) -> tuple[int, str]:
    """A client's exit code and what it printed.

    No pipe: the service of a client that failed at its start lives on, and would hold it open. In
    an empty folder: `python -m` takes modules, and wandb its settings, from the one it starts in.
    """
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as empty,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):
        done = subprocess.run(
            words,
            cwd=empty,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            check=False,
        )
        printed = b""
        for file in (output, errors):
            file.seek(0)
            printed += file.read()
    return done.returncode, printed.decode(errors="replace").strip()


def _is_empty(record: Record) -> bool:
    """Whether no record of any log in the folder is whole."""
    return not any(any(read_log(path)) for path in record.folder.glob("*.wandb"))


@contextlib.contextmanager
def _whole_log(record: Record) -> Iterator[Path]:
    """The folder to send: the record's own, or a copy whose log is complete.

    A killed client leaves a log that ends in the middle of a record and has no exit. Clients refuse
    such a log, or send it and do not count it as sent.
    """
    logs = sorted(record.folder.glob("*.wandb"))
    if all(is_complete(path) for path in logs):
        yield record.folder
        return
    with tempfile.TemporaryDirectory(prefix="runyard-sync-") as temporary:
        # Of the same name: clients read the run's start from it.
        copy = Path(temporary) / record.folder.name
        copy.mkdir()
        for path in record.folder.iterdir():
            if path in logs:
                copy_complete(path, copy / path.name)
            elif path.is_dir():  # Files that the run has saved.
                (copy / path.name).symlink_to(path.resolve())
        yield copy


def _whose(record: Record) -> list[str]:
    """Of what was logged to another server: whose run it is here."""
    note = record.note
    if note is None or not note.elsewhere:
        return []
    return ["--entity", note.entity or "", "--project", note.project or "", "--id", note.run]


def _clients(record: Record) -> Iterable[list[str]]:
    """Commands that may be a wandb client: first the one that wrote the record, unless somebody
    else can have named it."""
    pythons = dict.fromkeys(filter(None, (record.python, sys.executable, shutil.which("python3"))))
    on_path = shutil.which("wandb")
    commands = [[python, "-m", "wandb"] for python in pythons]
    return [commands[0], *([[on_path]] if on_path else []), *commands[1:]]
