"""The code as it is when a job is submitted, kept by content.

A job may start days later, and must run what was submitted, not what the project has become. So
the project's code is copied into the state folder once for each content, and jobs run in that copy.
What is no code (ignored by git, large, data by its name) is there as links to the project's own.

`look` reads and writes nothing; `store` makes the copy, unless it is there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.errors import StateError, UsageError
from runyard.launch.listing import Listing, list_project
from runyard.launch.own_output import FileId, output_files

MANIFEST = "manifest.json"
# A copy of more than this is no code any more.
MOST_FILES, MOST_BYTES = 20_000, 500_000_000
# What fixes the versions of packages; compared when agents are added.
_LOCKS = (
    "uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "pixi.lock", "conda-lock.yml",
    "environment.yml", "environment.yaml", "requirements.txt", "requirements.lock",
    "pyproject.toml", "Pipfile", "pixi.toml", "renv.lock", "Manifest.toml",
)  # fmt: skip


class Changed(Exception):
    """A file changed between being looked at and being copied."""


@dataclass(frozen=True)
class Snapshot:
    """What a project's code is now."""

    root: Path
    digest: str
    files: Mapping[str, tuple[str, int]]
    """SHA-256 and mode of each, by its path from the root; of a link, its target instead."""
    links: tuple[str, ...]
    """What is no code."""
    large: tuple[str, ...]
    """Of these, what was left out for its size."""
    locks: Mapping[str, str]
    commit: str | None

    @property
    def record(self) -> dict[str, Any]:
        """What is kept with the job: which code, which dependencies."""
        return {"digest": self.digest, "commit": self.commit, "locks": dict(self.locks)}


def look(root: Path) -> Snapshot:
    """The project's code, hashed; without the files that this command's own output goes to."""
    listing = list_project(root)
    _refuse_too_much(root, listing)
    files: dict[str, tuple[str, int]] = {}
    outputs = output_files()
    for path in listing.code:
        fingerprint = _fingerprint(root / path, outputs)
        if fingerprint is not None:
            files[path] = fingerprint
    whole = hashlib.sha256()
    for path in sorted(files):
        digest, mode = files[path]
        whole.update(f"{path}\0{mode:o}\0{digest}\n".encode(errors="surrogateescape"))
    locks = {name: files[name][0][:16] for name in _LOCKS if name in files}
    return Snapshot(
        root=root,
        digest=whole.hexdigest()[:20],
        files=files,
        links=listing.links,
        large=listing.large,
        locks=locks,
        commit=listing.commit,
    )


def folder_of(home: Path, snapshot: Snapshot) -> Path:
    """Where the copy is or will be; it has the name of the project's folder."""
    return snapshots_of(home) / key_of(snapshot) / (snapshot.root.name or "project")


def key_of(snapshot: Snapshot) -> str:
    # The links lead into one project: two clones with the same code do not share a copy.
    where = hashlib.sha256(os.fsencode(snapshot.root)).hexdigest()[:6]
    return f"{snapshot.digest}-{where}"


def snapshots_of(home: Path) -> Path:
    return home / "snapshots"


def store(home: Path, snapshot: Snapshot) -> Path:
    """Make the copy, or find it made; its folder."""
    tree = folder_of(home, snapshot)
    try:
        if not tree.parent.is_dir():
            _copy(home, snapshot, tree)
        _refresh_links(snapshot, tree)
        os.utime(tree.parent)  # It is wanted now: see `clean`.
    except OSError as error:
        raise StateError(
            f"the code of {snapshot.root} cannot be copied to {tree.parent}",
            said=error.strerror,
            mend="make room there, set RUNYARD_HOME to another disk, or submit with --no-snapshot",
        ) from error
    return tree


def differing(old: Mapping[str, Any], new: Snapshot, home: Path) -> list[str]:
    """Files in which the project is not what it was; empty where nothing is known of then."""
    digest = old.get("digest")
    for manifest in snapshots_of(home).glob(f"{digest}-*/{MANIFEST}"):
        with contextlib.suppress(OSError, ValueError, KeyError):
            then = json.loads(manifest.read_text())["files"]
            names = {*then, *new.files}
            now = {name: list(entry) for name, entry in new.files.items()}
            return sorted(name for name in names if then.get(name) != now.get(name))
    return []


def find_stored(home: Path, digest: str) -> Path | None:
    """The copy with this digest, if it is still there."""
    for manifest in snapshots_of(home).glob(f"{digest}-*/{MANIFEST}"):
        trees = [entry for entry in manifest.parent.iterdir() if entry.is_dir()]
        if trees:
            return trees[0]
    return None


def clean(
    copies: Path,
    needed: Collection[str],
    *,
    older_than: float,
    let_go: Callable[[Path], bool] = lambda _copy: True,
) -> list[str]:
    """Remove the copies that no job needs; their digests.

    `older_than`: epoch seconds; a copy that was wanted since may be on its way to a job. `let_go`
    is asked before one is removed, and may first save what is in it.
    """
    removed = []
    for copy in sorted(copies.glob(f"*/{MANIFEST}")):
        digest = copy.parent.name.partition("-")[0]
        with contextlib.suppress(OSError, ValueError, KeyError):
            if digest not in needed and copy.parent.stat().st_mtime < older_than:
                removed.append(digest)
                if let_go(copy.parent):
                    _remove(copy.parent)
    for left in copies.glob(".aside-*"):  # Of a command that was killed.
        with contextlib.suppress(OSError):
            if left.stat().st_mtime < older_than:
                _remove(left)
    return removed


def _fingerprint(path: Path, outputs: Collection[FileId]) -> tuple[str, int] | None:
    try:
        status = path.lstat()
        if (status.st_dev, status.st_ino) in outputs:
            return None
        if stat.S_ISLNK(status.st_mode):
            return str(path.readlink()), 0o777
        if not stat.S_ISREG(status.st_mode):
            return None
        mode = 0o555 if status.st_mode & 0o100 else 0o444
        return hashlib.sha256(path.read_bytes()).hexdigest(), mode
    except FileNotFoundError:  # Tracked, and deleted.
        return None
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read for the snapshot of the code",
            said=error.strerror,
            mend="make it readable, ignore it in .gitignore, or submit with --no-snapshot",
        ) from error


def _copy(home: Path, snapshot: Snapshot, tree: Path) -> None:
    """Aside, then renamed: a copy that has its name is whole."""
    snapshots_of(home).mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".aside-", dir=snapshots_of(home)))
    try:
        inside = aside / tree.name
        inside.mkdir()
        made: set[Path] = {inside}
        for path, (digest, mode) in snapshot.files.items():
            target = inside / path
            if target.parent not in made:
                target.parent.mkdir(parents=True, exist_ok=True)
                made.add(target.parent)
            _copy_one(snapshot.root / path, target, digest, mode)
        content = {
            "root": str(snapshot.root),
            "tree": tree.name,
            "files": {path: list(entry) for path, entry in snapshot.files.items()},
            **snapshot.record,
        }
        (aside / MANIFEST).write_text(json.dumps(content))
        with contextlib.suppress(OSError):  # Another command was quicker, with the same.
            aside.rename(tree.parent)
    finally:
        _remove(aside)


def _copy_one(source: Path, target: Path, digest: str, mode: int) -> None:
    if mode == 0o777:
        target.symlink_to(digest)
        return
    try:
        content = source.read_bytes()
    except FileNotFoundError:
        raise Changed(str(source)) from None
    if hashlib.sha256(content).hexdigest() != digest:
        raise Changed(str(source))
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(content)


def _refresh_links(snapshot: Snapshot, tree: Path) -> None:
    for path in snapshot.links:
        target = tree / path
        if not target.parent.is_dir():
            target.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            target.symlink_to(snapshot.root / path)


def _remove(folder: Path) -> None:
    # Links are removed, never followed: what they lead to is the project's own.
    shutil.rmtree(folder, ignore_errors=True)


def _refuse_too_much(root: Path, listing: Listing) -> None:
    if len(listing.code) <= MOST_FILES and listing.size <= MOST_BYTES:
        return
    raise UsageError(
        f"{root} is too much to be copied as code: {len(listing.code):,} files, "
        f"{listing.size / 1e6:,.0f} MB",
        mend="name its data in .gitignore (jobs see what is ignored as it is in the project), or "
        "submit with --no-snapshot",
    )
