"""Names of metrics, each written once: blobs hold their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from sqlite3 import Connection

from runyard.server.history.columns import NEST

STEP = "_step"
# Below what the oldest SQLite takes in one statement.
_MOST_AT_ONCE = 500


def number_keys(db: Connection, names: Iterable[str]) -> dict[str, int]:
    """Numbers for names; new names are added."""
    wanted = list(names)
    known = known_keys(db, wanted)
    for name in wanted:
        if name not in known:
            text = name.encode(errors="surrogatepass")
            cursor = db.execute("INSERT INTO keys (name) VALUES (?)", (text,))
            known[name] = cursor.lastrowid or 0
    return known


def known_keys(db: Connection, names: Iterable[str]) -> dict[str, int]:
    """Numbers of the names that are known.

    All are asked for at once: a question each would be most of what storing a short batch costs.
    """
    texts = {name.encode(errors="surrogatepass"): name for name in names}
    known: dict[str, int] = {}
    for start in range(0, len(texts), _MOST_AT_ONCE):
        some = list(texts)[start : start + _MOST_AT_ONCE]
        rows = db.execute(
            f"SELECT key, name FROM keys WHERE name IN ({','.join('?' * len(some))})",
            some,
        )
        known |= {texts[row["name"]]: row["key"] for row in rows}
    return known


def key_reader(db: Connection) -> Callable[[int], str]:
    """Names for numbers."""
    known: dict[int, str] = {}

    def name(key: int) -> str:
        if key not in known:
            row = db.execute("SELECT name FROM keys WHERE key = ?", (key,)).fetchone()
            known[key] = row["name"].decode(errors="surrogatepass")
        return known[key]

    return name


def dotted(name: str) -> str:
    """A name as people write it."""
    return name.replace(NEST, ".")
