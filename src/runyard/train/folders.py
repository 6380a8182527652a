"""Checkpoints on disk: a folder each, there as a whole or not at all.

    checkpoints/
        0000008-step-900/      manifest.json, and a file or folder for each part
        0000009-step-1000/     the ninth save, after 1000 steps
        best -> 0000008-step-900
        latest -> 0000009-step-1000

A folder is written under another name, brought to the disk file by file, and renamed. The manifest
has the size and the SHA-256 of every file, and its own, so that what a disk or a transfer did to
them later is seen before anything is loaded.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from runyard.save_protocol import MANIFEST, attempt_in, attempt_note, take_folder
from runyard.train.errors import Damaged
from runyard.train.saying import warn

_FORMAT = 1
_NAME = re.compile(r"(\d+)-step-(\d+)")
_PARTIAL, _OLD, _DAMAGED = ".partial-", ".old-", "damaged-"
_CHUNK = 1 << 20


class Part(NamedTuple):
    """One thing to write: into a file, or into a folder of its own (a name without ending)."""

    file: str
    write: Callable[[BinaryIO], None] | None
    write_folder: Callable[[Path], None] | None = None


class Saved(NamedTuple):
    """A checkpoint that is there, whole or not: who wants to load it verifies it."""

    number: int
    step: int
    path: Path


def saved(root: Path) -> list[Saved]:
    """The checkpoints in a folder, oldest first."""
    checkpoints = []
    for path in root.glob("*-step-*"):
        name = _NAME.fullmatch(path.name)
        if name is not None and path.is_dir():
            checkpoints.append(Saved(int(name[1]), int(name[2]), path))
    return sorted(checkpoints)


def take(root: Path) -> None:
    """Be the attempt that saves here. Where a later one is, this program ends.

    A node may be heard again, or a process woken, after its run went on elsewhere.
    """
    mine, run = _this_attempt(), os.environ.get("WANDB_RUN_ID")
    there = attempt_in(str(root), run)
    if mine is None or there == mine:
        return
    if there is not None and there > mine:
        warn(
            f"this is attempt {mine}, and attempt {there} has gone on with the run meanwhile: "
            "nothing more is saved here, and this program ends. Nothing is lost and nothing is to "
            f"be done. (If there is no attempt {there}: remove {attempt_note(str(root))})"
        )
        # Not the code that asks to be started again.
        raise SystemExit(1)
    with contextlib.suppress(OSError):
        root.mkdir(parents=True, exist_ok=True)
    take_folder(str(root), run, mine)


def write(root: Path, step: int, parts: list[Part], about: Mapping[str, Any]) -> Path:
    """Write a checkpoint, whole or not at all. OSError leaves what was there before."""
    root.mkdir(parents=True, exist_ok=True)
    take(root)
    # Numbered by the save, not by the step: a run that starts anew goes before an older one, and
    # saving a step again replaces nothing.
    number = max((entry.number for entry in saved(root)), default=0) + 1
    place = root / f"{number:07d}-step-{step}"
    aside = root / f"{_PARTIAL}{_fresh()}"
    try:
        aside.mkdir()
        files: dict[str, list[Any]] = {}
        for part in parts:
            files.update(_write_part(aside, part))
        manifest = {"format": _FORMAT, "step": step, **about, "files": files}
        text = json.dumps({**manifest, "checksum": _checksum(manifest)}, indent=1)
        with _synced(aside / MANIFEST) as file:
            file.write(text.encode())
        _sync_folder(aside)
        take(root)  # Writing takes its time.
        aside.rename(place)
        _sync_folder(root)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return place


def verify(path: Path) -> dict[str, Any]:
    """The manifest of a checkpoint whose every byte is as it was written; Damaged if it is not."""
    try:
        manifest: dict[str, Any] = json.loads((path / MANIFEST).read_bytes())
        checksum = manifest.pop("checksum")
        files: dict[str, list[Any]] = manifest["files"]
        if checksum != _checksum(manifest):
            raise Damaged(f"{path / MANIFEST} has changed since it was written")
        if manifest["format"] != _FORMAT:
            raise Damaged(f"{path} has format {manifest['format']}: a newer runyard wrote it")
        for name, (size, digest) in files.items():
            _verify_file(path / name, size, digest)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(f"{path} is not whole", said=f"{type(error).__name__}: {error}") from error
    return manifest


def set_aside(path: Path) -> Path:
    """Take a damaged checkpoint out of the row, but keep it for a look."""
    aside = path.with_name(f"{_DAMAGED}{path.name}")
    shutil.rmtree(aside, ignore_errors=True)
    return path.rename(aside)


def point(root: Path, name: str, target: Path) -> None:
    """Make `root/name` a link to a checkpoint, for people: nothing of ours reads it."""
    aside = root / f".{name}-{_fresh()}"
    # Not every file system has links.
    with contextlib.suppress(OSError):
        aside.symlink_to(target.name)
        aside.replace(root / name)


def tidy(root: Path, keep: int, best: str | None) -> None:
    """Keep the newest `keep` checkpoints and the best one; remove leftovers of killed writers.

    Not in a folder that is a later attempt's by now.
    """
    there = saved(root)
    if _is_of_later(root):  # After looking: what it saves is not among them.
        return
    for entry in there[:-keep]:
        if entry.path.name != best:
            # Renamed first: a half-removed checkpoint must not be found as one.
            gone = root / f"{_OLD}{_fresh()}"
            with contextlib.suppress(OSError):
                entry.path.rename(gone)
    remove_leftovers(root)
    damaged = sorted(root.glob(f"{_DAMAGED}*"), key=lambda path: path.stat().st_mtime)
    for path in damaged[:-1]:
        shutil.rmtree(path, ignore_errors=True)


def remove_leftovers(root: Path) -> None:
    """Remove what a killed writer left half-written or half-removed."""
    for prefix in (_PARTIAL, _OLD):
        for path in root.glob(f"{prefix}*"):
            shutil.rmtree(path, ignore_errors=True)
    for name in ("best", "latest"):
        for path in root.glob(f".{name}-*"):
            path.unlink(missing_ok=True)


def _this_attempt() -> int | None:
    """None where nobody counts: without runyard."""
    try:
        return int(os.environ["RUNYARD_ATTEMPT"])
    except (KeyError, ValueError):
        return None


def _is_of_later(root: Path) -> bool:
    """Whether a later attempt of our run saves here now."""
    mine = _this_attempt()
    there = attempt_in(str(root), os.environ.get("WANDB_RUN_ID"))
    return mine is not None and there is not None and there > mine


def _fresh() -> str:
    return os.urandom(8).hex()


class _HashingFile:
    """A file to write to that knows the SHA-256 of what was written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes | memoryview) -> int:
        self._hash.update(data)
        self._file.write(data)
        count = len(data) if isinstance(data, bytes) else memoryview(data).nbytes
        self.size += count
        return count

    def flush(self) -> None:
        self._file.flush()

    def digest(self) -> str:
        return self._hash.hexdigest()


def _write_part(aside: Path, part: Part) -> Iterator[tuple[str, list[Any]]]:
    place = aside / part.file
    if part.write is not None:
        with _synced(place) as file:
            hashing = _HashingFile(file)
            part.write(hashing)  # type: ignore[arg-type]
        yield part.file, [hashing.size, hashing.digest()]
    if part.write_folder is not None:
        place.mkdir()
        part.write_folder(place)
        for path in sorted(place.rglob("*")):
            if path.is_dir():
                _sync_folder(path)
            else:
                with path.open("rb") as written:
                    os.fsync(written.fileno())
                yield str(path.relative_to(aside)), [path.stat().st_size, _digest(path)]
        _sync_folder(place)


def _verify_file(path: Path, size: int, digest: str) -> None:
    there = path.stat().st_size
    if there != size:
        raise Damaged(f"{path} has {there} bytes instead of {size}")
    if _digest(path) != digest:
        raise Damaged(f"{path} has changed since it was written")


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _checksum(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


@contextlib.contextmanager
def _synced(path: Path) -> Iterator[BinaryIO]:
    with path.open("xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        # Some network file systems do not sync folders, and say so.
        with contextlib.suppress(OSError):
            os.fsync(number)
    finally:
        os.close(number)
