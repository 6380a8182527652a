"""A copy of the state folder, made while the server runs.

The copy is a state folder itself: `RUNYARD_HOME=copy runyard runs` works. The database is copied
first, in one consistent state; then the files, which are never changed once they are written. Who
asks for it is told how far it is, once a second, until it is done.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from runyard.home import MARKER, Home, read_discovery, write_discovery
from runyard.server.http.access import need_admin, tracker_of
from runyard.server.http.answers import HttpError, read_texts
from runyard.server.http.routes import LINES, Access, Endpoints
from runyard.server.store.database import Closed

api = Endpoints("server")

log = logging.getLogger(__name__)

_TELL_EVERY, _LOOK_EVERY = 1.0, 0.05
# What is being uploaded at this moment is nobody's file yet.
_UNFINISHED = "unfinished"


class Cancelled(Exception):
    """Whoever asked for the copy is gone, or the server ends."""


@dataclass
class Progress:
    """How many bytes are copied, of how many; and whether the copy is still wanted."""

    copied: int = 0
    total: int = 0
    cancelled: threading.Event = field(default_factory=threading.Event)

    def go_on(self) -> None:
        if self.cancelled.is_set():
            raise Cancelled("the copy was given up")


@api.post("/api/server/backup", access=Access.KEY, body={"path": str}, media=LINES)
async def backup(request: Request) -> Response:
    """Copy the state folder to a path on the server's machine; a line of JSON a second tells how
    far it is, the last one the copy's size.
    """
    need_admin(request, "copy it")
    path = (await read_texts(request)).get("path")
    if not isinstance(path, str) or not Path(path).is_absolute():
        raise HttpError(400, "path is not an absolute path")
    target = Path(path)
    for taken in (target, _aside(target)):
        if os.path.lexists(taken):
            raise HttpError(409, f"{taken} is there already")
    return StreamingResponse(_copy(request, target), media_type="application/x-ndjson")


async def _copy(request: Request, target: Path) -> AsyncIterator[str]:
    """Lines of JSON: how far it is, and at last the copy's size, or what went wrong."""
    tracker = tracker_of(request)
    progress = Progress()
    copying = asyncio.ensure_future(tracker.read_apart(copy_state, tracker.home, target, progress))
    try:
        while not copying.done():
            await asyncio.wait({copying}, timeout=_TELL_EVERY)
            yield f"{json.dumps({'copied': progress.copied, 'total': progress.total})}\n"
            if request.app.state.is_stopping():
                progress.cancelled.set()
        yield f"{json.dumps({'path': str(target), 'bytes': copying.result()})}\n"
    except (OSError, sqlite3.Error, Cancelled, Closed) as error:
        log.error("could not copy the state folder to %s: %s", target, error)
        yield f"{json.dumps({'error': f'{type(error).__name__}: {error}'})}\n"
    finally:
        progress.cancelled.set()
        await asyncio.wait({copying})  # It removes what it has made.


def copy_state(connection: sqlite3.Connection, home: Home, target: Path, progress: Progress) -> int:
    """Copy everything to a new folder; returns how many bytes the copy has."""
    # Aside first: what has its name is whole.
    aside = _aside(target)
    aside.mkdir(mode=0o700, parents=True)
    try:
        # BEGIN alone pins no moment.
        connection.execute("SELECT count(*) FROM runs").fetchone()
        progress.total = _size(home.database) + sum(map(_size, _files(home)))
        _copy_database(home, aside, progress)
        shutil.copy2(home.path / MARKER, aside / MARKER)
        shutil.copy2(home.secret, aside / home.secret.name)
        discovery = read_discovery(home)
        if discovery is not None:
            write_discovery(Home(aside), replace(discovery, running=False))
        _copy_files(home, aside, progress)
        aside.replace(target)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return sum(map(_size, target.rglob("*")))


def _aside(target: Path) -> Path:
    return target.with_name(f"{target.name}.part")


def _copy_database(home: Home, aside: Path, progress: Progress) -> None:
    """The file, then the log behind it: whatever the log holds comes on top of the file.

    The pinned moment keeps both from being rewritten meanwhile; the log may grow, and its last
    whole commit counts.
    """
    copy = aside / home.database.name
    for suffix in ("", "-wal"):
        source, target = (path.with_name(path.name + suffix) for path in (home.database, copy))
        _copy_file(source, target, progress)
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def _copy_file(source: Path, target: Path, progress: Progress) -> None:
    """By another process: ours would lose SQLite's locks on a file that it opens and closes.

    It is also quicker, since it waits for no thread of ours.
    """
    copied = progress.copied
    with subprocess.Popen(["cp", "--", source, target], stderr=subprocess.PIPE) as copying:
        try:
            while copying.poll() is None:
                progress.go_on()
                progress.copied = copied + _size(target)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    copying.wait(_LOOK_EVERY)
        except BaseException:
            copying.kill()
            raise
        complaint = copying.stderr.read().decode(errors="replace") if copying.stderr else ""
    if copying.returncode != 0:
        raise OSError(f"cp: {complaint.strip() or copying.returncode}")
    progress.copied = copied + _size(target)


def _files(home: Home) -> Iterator[Path]:
    """What to copy beside the database: each folder, then what is in it."""
    for folder in (home.files, home.blobs, home.runs, home.spool):
        yield folder
        for place, folders, files in os.walk(folder):
            if Path(place) == folder and _UNFINISHED in folders:
                folders.remove(_UNFINISHED)
            for name in (*folders, *files):
                yield Path(place) / name


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        return 0  # Deleted since, or delivered from the spool.


def _copy_files(home: Home, aside: Path, progress: Progress) -> None:
    for path in _files(home):
        progress.go_on()
        target = aside / path.relative_to(home.path)
        try:
            if path.is_dir() and not path.is_symlink():
                target.mkdir(exist_ok=True)
                shutil.copymode(path, target)
            else:
                shutil.copy2(path, target, follow_symlinks=False)
            progress.copied += _size(target)
        except FileNotFoundError:
            continue
