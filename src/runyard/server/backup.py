"""A copy of the state folder, made while the server runs.

The copy is a state folder itself: `RUNYARD_HOME=copy runyard runs` works. The database is copied
first, in one consistent state; then the files, which are never changed once they are written.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from runyard.home import MARKER, Home, read_discovery, write_discovery
from runyard.server.access import need_admin, tracker_of
from runyard.server.answers import Unacceptable, answer, read_texts

_PAGES_AT_ONCE = 2_000


async def backup(request: Request) -> Response:
    need_admin(request, "copy it")
    tracker = tracker_of(request)
    path = (await read_texts(request)).get("path")
    if not isinstance(path, str) or not Path(path).is_absolute():
        raise Unacceptable(400, "path is not an absolute path")
    target = Path(path)
    if os.path.lexists(target):
        raise Unacceptable(409, f"{target} is there already")
    size = await tracker.read(copy_state, tracker.home, target)
    return answer({"path": str(target), "bytes": size})


def copy_state(connection: sqlite3.Connection, home: Home, target: Path) -> int:
    """Copy everything to a new folder; returns how many bytes the copy has."""
    # Aside first: what has its name is whole.
    aside = target.with_name(f"{target.name}.part")
    try:
        aside.mkdir(mode=0o700, parents=True)
        with closing(sqlite3.connect(aside / home.database.name)) as copy:
            # In pieces: writers get their turn in between.
            connection.backup(copy, pages=_PAGES_AT_ONCE)
        shutil.copy2(home.path / MARKER, aside / MARKER)
        shutil.copy2(home.secret, aside / home.secret.name)
        discovery = read_discovery(home)
        if discovery is not None:
            write_discovery(Home(aside), replace(discovery, running=False))
        for folder in (home.files, home.blobs, home.runs, home.spool):
            shutil.copytree(folder, aside / folder.name, symlinks=True)
        aside.replace(target)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return sum(path.lstat().st_size for path in target.rglob("*"))
