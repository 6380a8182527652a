"""Dotted names of metrics: each dot may be part of a key or lie between two nested ones.

One rule everywhere, and it looks at the one run in question: the longest key wins. Of `val.loss`
that is the key "val.loss" itself where the run has it, and else "loss" inside of "val".
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterable, Sequence
from sqlite3 import Connection
from typing import Any

from runyard.server.history.columns import NEST, keys_in
from runyard.server.history.history import keys_of_run
from runyard.server.history.metric_keys import dotted, key_reader, known_keys

# A name with more parts may stand for too many keys: then all of them nest, or none does.
_MOST_PARTS = 6


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()


def look_up(content: Any, path: Sequence[str], *, in_lists: bool = False) -> Any:
    """What stands under a dotted name's parts in a row, summary or config; MISSING for nothing."""
    if not path:
        return content
    if in_lists and isinstance(content, list):
        number = int(path[0]) if path[0].isdecimal() and len(path[0]) < 7 else len(content)
        rest = content[number : number + 1]
        return look_up(rest[0], path[1:], in_lists=True) if rest else MISSING
    if not isinstance(content, dict):
        return MISSING
    for length in range(len(path), 0, -1):
        key = ".".join(path[:length])
        if key in content:
            value = look_up(content[key], path[length:], in_lists=in_lists)
            if value is not MISSING:
                return value
    return MISSING


def keys_of_runs(
    db: Connection, runs: Collection[int], stream: int, names: Iterable[str]
) -> dict[str, dict[int, int]]:
    """By name, and then by run, the key that the name stands for there.

    A run without any of the possible keys is missing, or has a key without values.
    """
    possible = _possible_keys(db, names)
    contested = {key for keys in possible.values() if len(keys) > 1 for key in keys}
    logged = _logged(db, runs, stream, contested) if contested else {}
    return {
        name: dict.fromkeys(runs, keys[0])
        if len(keys) == 1
        else {
            run: next(key for key in keys if key in logged[run])
            for run in runs
            if not logged.get(run, set()).isdisjoint(keys)
        }
        for name, keys in possible.items()
    }


def keys_of_names(db: Connection, run: int, stream: int, names: Iterable[str]) -> dict[str, int]:
    """`keys_of_runs` for a single run."""
    by_run = keys_of_runs(db, [run], stream, names)
    return {name: keys[run] for name, keys in by_run.items() if run in keys}


def names_of_run(db: Connection, run: int, stream: int) -> dict[str, int]:
    """All dotted names of a run's keys; of two keys with one dotted name, the one it stands for."""
    name_of = key_reader(db)
    keys = sorted(keys_of_run(db, run, stream), key=name_of)
    # NEST sorts before the dot, so the longest key comes last.
    return {dotted(name_of(key)): key for key in keys}


def _possible_keys(db: Connection, names: Iterable[str]) -> dict[str, list[int]]:
    """The keys, of anybody's runs, that names may stand for, the longest first."""
    forms = {name: _forms(name) for name in names}
    known = known_keys(db, [form for some in forms.values() for form in some])
    possible = {
        name: [known[form] for form in some if form in known] for name, some in forms.items()
    }
    return {name: keys for name, keys in possible.items() if keys}


def _forms(name: str) -> list[str]:
    """The ways in which a dotted name can be nested, the longest key first."""
    parts = name.split(".")
    if len(parts) > _MOST_PARTS:
        return [name, NEST.join(parts)]
    ways = itertools.product((".", NEST), repeat=len(parts) - 1)
    return [
        parts[0] + "".join(joint + part for joint, part in zip(way, parts[1:], strict=True))
        for way in ways
    ]


def _logged(
    db: Connection, runs: Collection[int], stream: int, keys: Collection[int]
) -> dict[int, set[int]]:
    """Which of the keys each run has."""
    values = {"runs": json.dumps(list(runs)), "stream": stream, "keys": json.dumps(list(keys))}
    logged: dict[int, set[int]] = {}
    for row in db.execute(
        "SELECT DISTINCT run, key FROM series WHERE stream = :stream AND level = 0 "
        "AND run IN (SELECT value FROM json_each(:runs)) "
        "AND key IN (SELECT value FROM json_each(:keys))",
        values,
    ):
        logged.setdefault(row["run"], set()).add(row["key"])
    for row in db.execute(
        "SELECT run, data FROM batches WHERE stream = :stream "
        "AND run IN (SELECT value FROM json_each(:runs))",
        values,
    ):
        logged.setdefault(row["run"], set()).update(keys_in(row["data"]) & set(keys))
    return logged
