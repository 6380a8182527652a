"""Manifests: what a version holds. A client sends one, or several that make one at commit."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from sqlite3 import Connection
from typing import Any

from runyard.server.store.sql import Row, fetch_column, fetch_number, fetch_one, insert
from runyard.server.store.store import Store

Entry = tuple[str, str, int, int, str]

FULL, INCREMENTAL, PATCH = "FULL", "INCREMENTAL", "PATCH"
GONE = "the artifact of this manifest is gone"
ENTRIES_AT_ONCE = 2_000
_LONGEST_PATH = 4096
# Of a file, in bytes: what JSON keeps exactly in every language.
_LARGEST = 2**53
# What the client puts before names and digests when it makes an artifact's digest.
_DIGEST_HEAD = b"wandb-artifact-manifest-v1\n"


class BadManifest(ValueError):
    """A manifest that cannot be one."""


def is_md5(digest: str) -> bool:
    try:
        return len(base64.b64decode(digest, validate=True)) == 16
    except (binascii.Error, ValueError):
        return False


def parse(text: bytes) -> tuple[str, list[Entry]]:
    """The frame of a manifest, as JSON without the contents, and its entries."""

    def refuse(word: str) -> None:
        raise BadManifest(f"{word} is not JSON")

    try:
        content = json.loads(text, parse_constant=refuse)
        frame = {key: value for key, value in content.items() if key != "contents"}
        entries = [_read_entry(path, entry) for path, entry in content["contents"].items()]
        if not frame:
            raise BadManifest("it has no version")
        return json.dumps(frame, allow_nan=False), entries
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadManifest(f"the manifest cannot be read: {error!s:.200}") from error


def _read_entry(path: str, entry: dict[str, Any]) -> Entry:
    digest, size, ref = entry["digest"], entry.get("size"), entry.get("ref")
    if not isinstance(digest, str) or not isinstance(size, int | None) or (size or 0) > _LARGEST:
        raise BadManifest(f"{path[:100]!r} has no digest, or a size that is none")
    # Clients write a version's files to the paths that it names, below a folder of theirs.
    if (
        not path
        or path.startswith("/")
        or ".." in path.replace("\\", "/").split("/")
        or "\0" in path
        or len(path.encode()) > _LONGEST_PATH
    ):
        raise BadManifest(f"{path[:100]!r} leads out of the artifact")
    digest.encode()  # Half a surrogate pair is no text that can be stored.
    if ref is None and not is_md5(digest):
        raise BadManifest(f"the digest of {path[:100]!r} is not an MD5 in base64")
    # A path of the machine that it came from means nothing anywhere else.
    stored = {key: value for key, value in entry.items() if key != "local_path"}
    return path, digest, max(size or 0, 0), int(ref is None), json.dumps(stored, allow_nan=False)


def create(
    db: Connection, artifact: int, kind: str, digest: str, base: int | None, now: float
) -> int:
    columns = {"artifact": artifact, "kind": kind, "digest": digest, "base": base}
    return insert(db, "manifests", {**columns, "created_at": now})


def by_key(db: Connection, key: int) -> Row | None:
    """A manifest, with `state` and `entity` of its artifact."""
    return fetch_one(
        db,
        "SELECT manifests.*, artifacts.state AS state, projects.entity AS entity FROM manifests "
        "JOIN artifacts ON artifacts.key = manifests.artifact "
        "JOIN collections ON collections.key = artifacts.collection "
        "JOIN projects ON projects.key = collections.project WHERE manifests.key = ?",
        (key,),
    )


def announce(db: Connection, key: int, digest: str, base: int | None) -> None:
    """Say which file is to come; what came under another digest is void."""
    row = by_key(db, key)
    if row is not None and row["digest"] != digest:
        db.execute("DELETE FROM entries WHERE manifest = ?", (key,))
        db.execute(
            "UPDATE manifests SET digest = ?, frame = NULL, base = coalesce(?, base) WHERE key = ?",
            (digest, base, key),
        )


def put_entries(db: Connection, key: int, entries: Sequence[Entry]) -> None:
    db.executemany(
        "INSERT OR REPLACE INTO entries (manifest, path, digest, size, is_stored, entry) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        [(key, *entry) for entry in entries],
    )


def finish(db: Connection, key: int, frame: str) -> None:
    db.execute("UPDATE manifests SET frame = ? WHERE key = ?", (frame, key))


def settle(db: Connection, artifact: int, now: float) -> tuple[int, bool] | None:
    """The manifest that counts, and whether it was put together from several."""
    arrived = db.execute(
        "SELECT * FROM manifests WHERE artifact = ? AND frame IS NOT NULL ORDER BY key", (artifact,)
    ).fetchall()
    if not arrived:
        return None
    last = arrived[-1]
    if last["kind"] == FULL:
        return last["key"], False
    if last["kind"] == INCREMENTAL:
        parts = [*_base(db, artifact, last["base"]), last["key"]]
    else:
        parts = [row["key"] for row in arrived if row["kind"] == PATCH]
    whole = create(db, artifact, FULL, "", None, now)
    for part in parts:
        db.execute(
            "INSERT OR REPLACE INTO entries (manifest, path, digest, size, is_stored, entry) "
            "SELECT ?, path, digest, size, is_stored, entry FROM entries WHERE manifest = ?",
            (whole, part),
        )
    finish(db, whole, last["frame"])
    return whole, True


def _base(db: Connection, artifact: int, base: int | None) -> list[int]:
    # Never one of somebody else's.
    entity = (
        "SELECT projects.entity FROM artifacts "
        "JOIN collections ON collections.key = artifacts.collection "
        "JOIN projects ON projects.key = collections.project WHERE artifacts.key = ?"
    )
    row = db.execute(
        "SELECT manifest FROM artifacts WHERE key = ? AND state = 'COMMITTED' "
        f"AND manifest IS NOT NULL AND ({entity}) = ({entity})",
        (base, base, artifact),
    ).fetchone()
    return [] if row is None else [row["manifest"]]


def measure(db: Connection, key: int) -> tuple[int, int]:
    row = db.execute(
        # References may claim any size: their sum can be more than SQLite's integers hold.
        "SELECT count(*), cast(min(total(size), 9e18) AS INTEGER) FROM entries WHERE manifest = ?",
        (key,),
    ).fetchone()
    return row[0], row[1]


def digest_of(db: Connection, key: int) -> str:
    """The digest that a client would give to these contents."""
    digest = hashlib.md5(_DIGEST_HEAD, usedforsecurity=False)
    for row in db.execute(
        "SELECT path, digest FROM entries WHERE manifest = ? ORDER BY path", (key,)
    ):
        digest.update(f"{row['path']}:{row['digest']}\n".encode())
    return digest.hexdigest()


def entries_after(
    db: Connection, key: int, path: str, limit: int, *, names: Sequence[str] | None = None
) -> list[Row]:
    tests, values = _named(names)
    return db.execute(
        f"SELECT * FROM entries WHERE manifest = ? AND path > ? {tests}ORDER BY path LIMIT ?",
        [key, path, *values, limit],
    ).fetchall()


def count_entries(db: Connection, key: int, names: Sequence[str]) -> int:
    tests, values = _named(names)
    return fetch_number(
        db,
        f"SELECT count(*) FROM entries WHERE manifest = ? {tests}",
        [key, *values],
    )


def _named(names: Sequence[str] | None) -> tuple[str, list[str]]:
    """One value however many names: SQLite takes only so many."""
    if names is None:
        return "", []
    return "AND path IN (SELECT value FROM json_each(?)) ", [json.dumps(names)]


def digests(db: Connection, artifact: int) -> list[str]:
    """The contents that a version needs, in whichever manifest."""
    return fetch_column(
        db,
        "SELECT entries.digest FROM entries "
        "JOIN manifests ON manifests.key = entries.manifest "
        "WHERE manifests.artifact = ? AND entries.is_stored "
        "UNION SELECT digest FROM claims WHERE artifact = ?",
        (artifact, artifact),
    )


def in_pieces(entries: Sequence[Entry], size: int) -> Iterator[Sequence[Entry]]:
    for start in range(0, len(entries), size):
        yield entries[start : start + size]


async def written(store: Store, key: int) -> AsyncIterator[bytes] | None:
    """A manifest, written anew from what it holds; None if there is none."""
    row = await store.read(by_key, key)
    if row is None or row["frame"] is None:
        return None

    async def pieces() -> AsyncIterator[bytes]:
        # The frame is an object that is never empty: it has a version.
        yield f'{row["frame"].rstrip()[:-1]}, "contents": {{'.encode()
        path, comma = "", ""
        while some := await store.read(entries_after, key, path, ENTRIES_AT_ONCE):
            lines = (f"{json.dumps(entry['path'])}: {entry['entry']}" for entry in some)
            yield (comma + ",\n".join(lines)).encode()
            path, comma = some[-1]["path"], ",\n"
        yield b"}}"

    return pieces()
