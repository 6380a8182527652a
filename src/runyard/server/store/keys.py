"""Names of metrics, each written once: blobs hold their numbers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable

from runyard.server.store.columns import NEST

STEP = "_step"


def key_writer(connection: sqlite3.Connection) -> Callable[[str], int]:
    """Numbers for names, within one change; new names are added."""
    known: dict[str, int] = {}

    def number(name: str) -> int:
        found = known.get(name)
        if found is None:
            text = name.encode(errors="surrogatepass")
            row = connection.execute("SELECT key FROM keys WHERE name = ?", (text,)).fetchone()
            if row is None:
                cursor = connection.execute("INSERT INTO keys (name) VALUES (?)", (text,))
                found = cursor.lastrowid or 0
            else:
                found = row["key"]
            known[name] = found
        return found

    return number


def key_reader(connection: sqlite3.Connection) -> Callable[[int], str]:
    """Names for numbers."""
    known: dict[int, str] = {}

    def name(key: int) -> str:
        if key not in known:
            row = connection.execute("SELECT name FROM keys WHERE key = ?", (key,)).fetchone()
            known[key] = row["name"].decode(errors="surrogatepass")
        return known[key]

    return name


def find_keys(connection: sqlite3.Connection, names: Iterable[str]) -> dict[str, int]:
    """Numbers of the names that are known; a dotted name may be a nested one."""
    found = {}
    for name in names:
        for form in dict.fromkeys((name, name.replace(".", NEST))):
            text = form.encode(errors="surrogatepass")
            row = connection.execute("SELECT key FROM keys WHERE name = ?", (text,)).fetchone()
            if row is not None:
                found[name] = row["key"]
                break
    return found


def dotted(name: str) -> str:
    """A name as people write it."""
    return name.replace(NEST, ".")
