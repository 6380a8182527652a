"""Which code a sweep was begun with, and whether the project is still that."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard.actions.events import Notice, Notify
from runyard.errors import UsageError

if TYPE_CHECKING:
    from runyard.client.api import Api
    from runyard.home import Home
    from runyard.shapes.sweeps import Sweep

_NAMED = 5


def code_for_more(
    api: Api, home: Home, sweep: Sweep, folder: Path, notify: Notify
) -> Mapping[str, Any] | None:
    """The record of the code that more agents of a sweep are to run; None where nothing is known
    of it, so that they run what the project is now. Says where the two differ."""
    from runyard.config.project_text import find_project_file, find_root
    from runyard.launch.snapshot import differing, find_stored, look

    then = _recorded(api, sweep)
    if then is None:
        return None
    file = find_project_file(folder)
    now = look(file.parent if file is not None else find_root(folder))
    if then.get("digest") == now.digest:
        return then
    names = differing(then, now, home.path)
    shown = f"{', '.join(names[:_NAMED])}{' ...' if len(names) > _NAMED else ''}" or "its files"
    if find_stored(home.path, str(then.get("digest"))) is None:
        raise UsageError(
            f"the code with which sweep {sweep['id']} began is not kept any more, and the project "
            f"has changed since",
            mend="--code now runs what the project is today",
        )
    notify(
        Notice(
            f"the project has changed since sweep {sweep['id']} began: {shown}. These agents run "
            "the code of then; --code now takes today's"
        )
    )
    locks = then.get("locks") or {}
    moved = sorted(name for name in {*locks, *now.locks} if locks.get(name) != now.locks.get(name))
    if moved:
        notify(
            Notice(
                f"the dependencies have changed too ({', '.join(moved)}), and the environment is "
                "the one that is there now: results may differ for that"
            )
        )
    return then


def _recorded(api: Api, sweep: Sweep) -> dict[str, Any] | None:
    """Of the sweep's first job that had a copy of the code."""
    for job in reversed(api.jobs.jobs(sweep=sweep["key"])):
        if job["snapshot"] is not None:
            try:
                record = json.loads((Path(job["folder"]) / "job.json").read_text())["snapshot"]
            except (OSError, ValueError, KeyError):
                record = None
            return record if isinstance(record, dict) else {"digest": job["snapshot"]}
    return None
