"""Keys: who has which, what each opens, until when.

The state folder's key and people's own open all that their owner may do, and stay until they are
revoked. Agents on nodes come with a second key of the state folder, which is for runs only. What
programs find in their environment is another matter: a program may send its key to whoever has the
server's port while the server is away. So each shell, run and job has a key of its own, for runs
only (`server/http/scopes.py`), which ends by itself some time after its last use.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

from runyard.proof import ID_LENGTH
from runyard.proof import hash_key as hash_key
from runyard.server.people.permissions import ALL, RUNS, Caller
from runyard.server.store.sql import Row, exists, fetch_number, fetch_one, insert
from runyard.shapes.people import HANDED_OUT as HANDED_OUT

FOLDER, NODES, PERSON = "folder", "nodes", "person"
SHELL, RUN, JOB = HANDED_OUT

# In place of the server's port: programs of agents and of `runyard run` log through a door beside
# them (`node/link/relay.py`), which lets the server prove itself first. Their keys never go to its
# port.
BEHIND_DOOR = 0

DAY = 24 * 3600.0
# How long after its last use a key ends. A run's does not end while the run lives (`keep_up`).
LIFETIMES = {SHELL: 7 * DAY, RUN: DAY, JOB: 2 * DAY}
# For so long a key that ended is remembered: who still comes with it is told why it is refused.
_REMEMBERED = 2 * DAY

# So many of a key's 40 characters are stored and shown: 128 of its 160 bits stay secret.
_SHOWN = 8

# The key that the state folder's own commands use; see `runyard.home.Discovery`.
OWN_LABEL = "state folder"
_NODES_LABEL = "agents on nodes"

_SELECT = (
    "SELECT api_keys.*, users.name AS name, users.admin AS admin FROM api_keys "
    "JOIN users ON users.key = api_keys.user"
)


@dataclass
class Key:
    """A key as the server keeps it in memory."""

    hashed: str
    caller: Caller
    kind: str
    label: str
    lifetime: float | None = None
    expires_at: float | None = None
    retired: str | None = None
    port: int | None = None
    """The server's when it was made; of a person's, when a stock client last came with it."""

    def is_good(self, now: float) -> bool:
        return self.retired is None and (self.expires_at is None or now < self.expires_at)

    def note_use(self, now: float) -> None:
        """A key that is in use does not end."""
        if self.lifetime is not None and self.expires_at is not None:
            self.expires_at = max(self.expires_at, now + self.lifetime)

    @property
    def refusal(self) -> str:
        """Why it is not taken any more, and what to do."""
        why = self.retired or "has expired"
        return f"the key of {self.label or 'this ' + self.kind!r} {why}; {_MENDS[self.kind]}"


_MENDS = {
    FOLDER: "commands read the state folder's key in server.json",
    NODES: "`runyard server restart` makes another one",
    PERSON: "`runyard users keys add` makes another one",
    SHELL: '`eval "$(runyard env)"` gives this shell another one',
    RUN: "what the run still logs is kept in its wandb folder: `runyard sync` brings it in",
    JOB: "what the run still logs is kept in its wandb folder: `runyard sync` brings it in",
}


@dataclass(frozen=True)
class Wanted:
    """A key to be made. `port` is the server's; `run` is the run that it ends with."""

    label: str
    kind: str = PERSON
    scope: str = ALL
    lifetime: float | None = None
    port: int | None = None
    run: int | None = None


def handed_out(kind: str, label: str, port: int | None, run: int | None = None) -> Wanted:
    """A key for what programs run in."""
    return Wanted(label, kind, RUNS, LIFETIMES[kind], port, run)


def key_id(hashed: str) -> str:
    return hashed[:ID_LENGTH]


def add(db: Connection, user: int, key: str, wanted: Wanted, now: float) -> dict[str, Any]:
    """Make a key of a user's; what may be told of it."""
    end = None if wanted.lifetime is None else now + wanted.lifetime
    columns = {
        "hash": hash_key(key),
        "starts": key[:_SHOWN],
        "user": user,
        "created_at": now,
        "expires_at": end,
    }
    insert(db, "api_keys", {**columns, **vars(wanted)})
    row = db.execute(f"{_SELECT} WHERE hash = ?", (hash_key(key),)).fetchone()
    return _shown(row)


def own(db: Connection, user: int, key: str, now: float) -> None:
    db.execute(
        "INSERT INTO api_keys (hash, starts, user, label, created_at, kind) "
        "VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET kind = excluded.kind, starts = excluded.starts",
        (hash_key(key), key[:_SHOWN], user, OWN_LABEL, now, FOLDER),
    )


def for_nodes(db: Connection, before: str, fresh: str, now: float) -> str:
    """The key of the owner's agents: the one of before, or a fresh one where that was revoked."""
    question = "SELECT 1 FROM api_keys WHERE hash = ? AND kind = ?"
    if exists(db, question, (hash_key(before), NODES)):
        return before
    owner = fetch_number(db, "SELECT key FROM users WHERE admin")
    add(db, owner, fresh, Wanted(_NODES_LABEL, NODES, RUNS), now)
    return fresh


def list_all(db: Connection, now: float) -> list[dict[str, Any]]:
    """Keys that are good: people's first, then the newest of those that were handed out."""
    rows = db.execute(
        f"{_SELECT} WHERE retired IS NULL AND (expires_at IS NULL OR expires_at > ?) "
        "ORDER BY expires_at IS NOT NULL, name, created_at, hash",
        (now,),
    )
    return [_shown(row) for row in rows]


def _shown(row: Row) -> dict[str, Any]:
    """A key without the key."""
    columns = (
        "starts",
        "label",
        "kind",
        "scope",
        "created_at",
        "expires_at",
        "used_at",
        "used_from",
    )
    return {"id": key_id(row["hash"]), "user": row["name"], **{name: row[name] for name in columns}}


def run_of(db: Connection, key: str) -> int | None:
    """The run whose program has the key with this id."""
    # A range, so that the index is used; a hash is written in hexadecimal digits.
    row = fetch_one(db, "SELECT run FROM api_keys WHERE hash >= ? AND hash < ?", (key, f"{key}g"))
    return None if row is None else row["run"]


def revoke(db: Connection, user: int, key: str) -> bool:
    """Whether the user had a key with this id."""
    done = db.execute(
        "DELETE FROM api_keys WHERE user = ? AND substr(hash, 1, ?) = ?", (user, ID_LENGTH, key)
    )
    return done.rowcount > 0


def revoke_kind(db: Connection, user: int, kind: str) -> int:
    done = db.execute("DELETE FROM api_keys WHERE user = ? AND kind = ?", (user, kind))
    return done.rowcount


def retire(
    db: Connection,
    why: str,
    now: float,
    *,
    port: int | None = None,
    kinds: Collection[str] = HANDED_OUT,
) -> int:
    """Refuse keys from now on: those made while the server had this port, or, without one, all.

    A person's own is refused where a stock client came with it to that port: it may have gone on
    sending it there.

    `why` follows "the key of 'shell on HOST'": "was retired, since another program had ...".
    """
    marks = ", ".join("?" * len(kinds))
    return db.execute(
        "UPDATE api_keys SET retired = ?, expires_at = ? "
        f"WHERE retired IS NULL AND (kind IN ({marks}) AND (? IS NULL OR port IS NULL OR port = ?) "
        "OR kind = ? AND port = ?)",
        (why, now, *kinds, port, port, PERSON, port),
    ).rowcount


def end_soon(db: Connection, key: str, end: float) -> None:
    """Whoever had this key is over: it ends then, used or not."""
    db.execute(
        "UPDATE api_keys SET lifetime = NULL, expires_at = min(expires_at, ?) "
        "WHERE substr(hash, 1, ?) = ? AND expires_at IS NOT NULL",
        (end, ID_LENGTH, key),
    )


def note_uses(db: Connection, uses: Mapping[str, tuple[float, str, int | None]]) -> None:
    """`uses`: when each key was last used, from which address, and its port (`Key.port`)."""
    db.executemany(
        "UPDATE api_keys SET used_at = max(coalesce(used_at, 0), :at), used_from = :address, "
        "expires_at = max(expires_at, :at + coalesce(lifetime, 0)), port = :port "
        "WHERE hash = :hash AND retired IS NULL",
        [
            {"hash": hashed, "at": at, "address": address, "port": port}
            for hashed, (at, address, port) in uses.items()
        ],
    )


def keep_up(db: Connection, now: float) -> bool:
    """Let the keys of live runs live on, forget those that ended long ago; whether any changed.

    A run's program may compute for days before it logs its first row.
    """
    live = db.execute(
        "UPDATE api_keys SET expires_at = :now + lifetime WHERE lifetime IS NOT NULL "
        "AND expires_at < :now + lifetime / 2 AND expires_at > :now AND retired IS NULL "
        "AND run IN (SELECT key FROM runs WHERE state IN ('pending', 'running', 'preempting'))",
        {"now": now},
    )
    ended = db.execute("DELETE FROM api_keys WHERE expires_at < ?", (now - _REMEMBERED,))
    return live.rowcount + ended.rowcount > 0


def bridge(db: Connection, now: float) -> None:
    """While we were down nobody could use a key: those that were good then are good for a day."""
    db.execute(
        "UPDATE api_keys SET expires_at = max(expires_at, ?) WHERE lifetime IS NOT NULL "
        "AND retired IS NULL AND expires_at > (SELECT max(used_at) FROM api_keys)",
        (now + DAY,),
    )


def load(
    db: Connection,
    teams: Mapping[int, Collection[str]],
    owned: frozenset[str],
    hashed: str | None = None,
) -> dict[str, Key]:
    """The keys of users who are still here, by their hash; all of them, or one."""
    rows = db.execute(
        f"{_SELECT} WHERE users.removed_at IS NULL AND (:hash IS NULL OR hash = :hash)",
        {"hash": hashed},
    )
    keys = {}
    for row in rows:
        own_teams = frozenset(teams.get(row["user"], ()))
        is_owner, is_whole = bool(row["admin"]), row["scope"] == ALL
        caller = Caller(
            row["user"],
            row["name"],
            is_owner and is_whole,
            own_teams,
            key_id(row["hash"]),
            row["scope"],
            owned - own_teams - {row["name"]} if is_owner and not is_whole else None,
        )
        columns = ("kind", "label", "lifetime", "expires_at", "retired", "port")
        keys[row["hash"]] = Key(row["hash"], caller, *(row[name] for name in columns))
    return keys
