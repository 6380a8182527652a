"""Data to the node's own disk before a job's work, and results back to scratch after it.

    python -m runyard.node.data.staging in  SCRATCH LOCAL -- data/train data/val.h5
    python -m runyard.node.data.staging out SCRATCH LOCAL NAME -- 'results/*.csv' figures

In: everything named travels as one archive, which is made once, on scratch, and again when a file
has changed. Tasks on one node unpack once between them. Out: what matches comes to results/NAME on
scratch; a file that is newer there is left alone. Ends with an error when anything is missing, so
that the job stops before its work.
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from runyard.locks import FolderLock
from runyard.node.data.archives import Index, pack, unpack
from runyard.node.data.inventory import Entry, fingerprint, scan
from runyard.node.data.process_pool import Damaged

PARCELS = ".runyard/parcels"
RESULTS = "results"
# Who packs waits for the shared file system; who unpacks keeps a CPU and the node's disk busy.
_PACKERS = 16
_MOST_UNPACKERS = 8
_LONGEST_PACKING = 24 * 3600.0
_PROGRESS_SECONDS = 10.0
_SPARE = 1.05  # Files take whole blocks.


class StagingError(Exception):
    """What the job's log says: what is missing, and what to do."""


def check_paths(scratch: Path, paths: list[str]) -> list[str]:
    """What is wrong with the names; nothing, if they lie below scratch and are there."""
    problems = []
    for path in paths:
        whole = Path(os.path.normpath(path))
        if not path.strip() or whole == Path():
            problems.append("an empty path: name a file or a folder below the scratch folder")
        elif whole.is_absolute():
            problems.append(f"{path} is absolute: write it relative to {scratch}")
        elif ".." in whole.parts:
            problems.append(f"{path} leaves the scratch folder: copy or link it into {scratch}")
        elif not (scratch / whole).exists():
            problems.append(f"{path} is not in {scratch}: `ls {scratch}` shows what is")
    return problems


def stage_in(scratch: Path, local: Path, paths: list[str]) -> str:
    """Bring the paths to the same places below `local`; what was done, in words."""
    return fill(scratch, local, prepare(scratch, local, paths))


def prepare(scratch: Path, local: Path, paths: list[str]) -> str:
    """Have an archive of the paths on scratch, if this node has room for it; the archive's name.

    Once for all nodes of a job: looking at every file is what costs most there.
    """
    problems = check_paths(scratch, paths)
    if problems:
        raise StagingError("; ".join(problems))
    entries = scan(str(scratch), sorted(paths))
    _need_room(local, sum(entry.size for entry in entries), len(entries))
    name = fingerprint(entries)
    _make_parcel(scratch, entries, name)
    return name


def fill(scratch: Path, local: Path, name: str) -> str:
    """Unpack the archive of this name below `local`; what was done, in words."""
    began = time.monotonic()
    done = local / f".staged-{name}"
    with _alone(local / ".staging-lock"):
        if done.exists():
            return "data is on this node already"
        parcel = scratch / PARCELS / name
        try:
            index = Index.from_json((parcel / "index.json").read_text())
            _need_room(local, index.size, index.files)
            progress = _Progress("unpacking", index.size)
            unpack(str(scratch), str(_archive(parcel)), index, str(local), _cpus(), progress.add)
        except (OSError, ValueError) as error:
            if isinstance(error, Damaged):
                # The next job makes it anew. Not so for what is this node's trouble: others read.
                shutil.rmtree(parcel, ignore_errors=True)
            raise StagingError(f"{parcel} could not be unpacked into {local}: {error}") from error
        done.touch()
    return (
        f"unpacked {index.files} files, {_size(index.size)}, into {local} in "
        f"{time.monotonic() - began:.1f} s"
    )


def stage_out(scratch: Path, local: Path, name: str, patterns: list[str]) -> str:
    """Copy what matches to results/NAME; newer files that are there stay."""
    target = scratch / RESULTS / name
    copied = unchanged = 0
    for path in _matches(local, patterns):
        to = target / path.relative_to(local)
        if _is_newer(to, path):
            unchanged += 1
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        _copy_whole(path, to)
        copied += 1
    if not copied and not unchanged:
        return f"nothing in {local} matches {' '.join(patterns)}: no results came back"
    stayed = f", {unchanged} newer ones there were left alone" if unchanged else ""
    return f"{copied} results to {target}{stayed}"


def _make_parcel(scratch: Path, entries: list[Entry], name: str) -> None:
    """The archive of these files, if it is not there."""
    folder = scratch / PARCELS
    folder.mkdir(parents=True, exist_ok=True)
    parcel = folder / name
    if _is_whole(parcel):
        os.utime(parcel)
        return
    with _alone(folder / f"{name}.lock"):
        if _is_whole(parcel):
            return
        began = time.monotonic()
        aside = folder / f"{name}.{os.uname().nodename}.{os.getpid()}"
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        progress = _Progress("packing", sum(entry.size for entry in entries))
        try:
            index = pack(str(scratch), entries, str(aside / "data.tar"), _PACKERS, progress.add)
            if index.is_compressed:
                (aside / "data.tar").rename(aside / "data.tar.gz")
            (aside / "index.json").write_text(index.to_json())
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(parcel)
            aside.rename(parcel)
        except (OSError, ValueError) as error:
            shutil.rmtree(aside, ignore_errors=True)
            raise StagingError(f"the data in {scratch} could not be packed: {error}") from error
        if index.chunks:
            size = sum(chunk.length for chunk in index.chunks)
            took = time.monotonic() - began
            packed = index.files - len(index.large)
            _say(f"staging: packed {packed} files, {_size(size)}, in {took:.1f} s")
    with contextlib.suppress(FileNotFoundError):
        (folder / f"{name}.lock").unlink()
    _forget_old(folder, parcel)


def _is_whole(parcel: Path) -> bool:
    try:
        index = Index.from_json((parcel / "index.json").read_text())
        last = max((chunk.stored + chunk.length for chunk in index.chunks), default=0)
        return _archive(parcel).stat().st_size >= last
    except (OSError, ValueError, TypeError):
        return False


def _archive(parcel: Path) -> Path:
    plain = parcel / "data.tar"
    return plain if plain.exists() else parcel / "data.tar.gz"


def _forget_old(folder: Path, newest: Path) -> None:
    """Archives of the same paths, as they were before, that nobody has used for a week."""
    for other in folder.iterdir():
        if other == newest or not other.is_dir():
            continue
        with contextlib.suppress(OSError):
            if time.time() - other.stat().st_mtime > 7 * 24 * 3600:
                shutil.rmtree(other, ignore_errors=True)


def _need_room(local: Path, size: int, count: int) -> None:
    about = os.statvfs(local)
    free = about.f_bavail * about.f_frsize
    needed = int(size * _SPARE)
    if needed > free:
        raise StagingError(
            f"{local} on {os.uname().nodename} has {_size(free)} free, and the data needs "
            f"{_size(needed)}: stage less, ask for more node-local disk, or mount it from scratch"
        )
    if about.f_files and count > about.f_favail:
        raise StagingError(
            f"{local} on {os.uname().nodename} has room for {about.f_favail} files, and the data "
            f"has {count}: keep small files together in one (HDF5, tar, zarr)"
        )


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    lock = FolderLock(path)
    if not lock.acquire(_LONGEST_PACKING):
        raise StagingError(f"another task has held {path} for a day")
    try:
        yield
    finally:
        lock.release()


def _matches(local: Path, patterns: list[str]) -> list[Path]:
    paths: dict[Path, None] = {}
    for pattern in patterns:
        # Not Path's: before 3.13 its `**` passes over files.
        for name in sorted(glob.glob(pattern, root_dir=local, recursive=True)):
            path = local / name
            inside = sorted(path.rglob("*")) if path.is_dir() else [path]
            paths.update(dict.fromkeys(file for file in inside if file.is_file()))
    return list(paths)


def _is_newer(there: Path, here: Path) -> bool:
    try:
        return there.stat().st_mtime_ns >= here.stat().st_mtime_ns
    except FileNotFoundError:
        return False


def _copy_whole(path: Path, to: Path) -> None:
    aside = to.with_name(f".{to.name}.{os.getpid()}")
    try:
        shutil.copy2(path, aside)
        aside.replace(to)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


class _Progress:
    """A line now and then in the job's log."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total, self._done = what, total, 0
        self._began = self._told = time.monotonic()

    def add(self, count: int) -> None:
        self._done += count
        now = time.monotonic()
        if now - self._told < _PROGRESS_SECONDS or not self._done:
            return
        self._told = now
        left = (now - self._began) * (self._total - self._done) / self._done
        _say(
            f"{self._what}: {_size(self._done)} of {_size(self._total)}, "
            f"{100 * self._done // max(1, self._total)} %, {left:.0f} s left"
        )


def _cpus() -> int:
    return max(1, min(_MOST_UNPACKERS, len(os.sched_getaffinity(0))))


def _size(count: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def _say(text: str) -> None:
    print(f"runyard: {text}", file=sys.stderr, flush=True)


def main(words: list[str]) -> int:
    what, *rest = words
    places, paths = rest[: rest.index("--")], rest[rest.index("--") + 1 :]
    scratch, local = Path(places[0]), Path(places[1])
    try:
        if what == "in":
            _say(f"staging: {stage_in(scratch, local, paths)}")
        else:
            _say(f"staging: {stage_out(scratch, local, places[2], paths)}")
    except (StagingError, OSError) as error:
        _say(f"staging failed: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
