"""What people change of runs by hand: names, notes, groups and tags."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from sqlite3 import Connection
from typing import Any

from runyard.server.runs import runs


def edit_run(db: Connection, key: int, wanted: Mapping[str, Any]) -> None:
    """Set the columns that are named."""
    columns = dict(wanted)
    if "tags" in columns:
        columns["tags"] = json.dumps(list(dict.fromkeys(columns["tags"])))
    runs.update(db, key, **columns)


def change_tags(
    db: Connection, project: int, keys: Sequence[int], add: Collection[str], remove: Collection[str]
) -> int:
    """Of those runs that are the project's; how many have changed."""
    found = db.execute(
        "SELECT key, tags FROM runs WHERE project = ? AND key IN (SELECT value FROM json_each(?))",
        (project, json.dumps(list(keys))),
    ).fetchall()
    changed = 0
    for row in found:
        before: list[str] = json.loads(row["tags"])
        after = [tag for tag in dict.fromkeys((*before, *add)) if tag not in remove]
        if after != before:
            runs.update(db, row["key"], tags=json.dumps(after))
            changed += 1
    return changed
