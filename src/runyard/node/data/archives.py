"""Many files as one archive, packed and unpacked by several processes at once.

A parcel is an ordinary tar file, or, where that pays, an ordinary `.tar.gz`, which any tool reads.
It is cut into chunks of a few megabytes at places that are known before anything is written, so
each process reads or writes chunks of its own: thousands of small files come in a few large reads.
Compressed, every chunk is a gzip member of its own. Large files are not in it: several processes
copy parts of them straight from where they lie.
"""

# A Path for each would be half of the time that a small file takes.

from __future__ import annotations

import gzip
import json
import os
import stat
import sys
import tarfile
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from runyard.node.data.inventory import Entry
from runyard.node.data.process_pool import Damaged, in_processes

CHUNK = 4 << 20
# Of small files a chunk has this many, so that there are chunks for everybody.
_FILES = 128
# Files from here on are not packed: copied straight, they are read once and not stored twice.
LARGE = 64 << 20
_PART = 32 << 20
_BLOCK = 512
_SAMPLE = 1 << 20
# Below this share of the size, reading less makes up for unpacking more slowly.
_PAYS = 0.5


class Piece(NamedTuple):
    """A part of a file, at its place in the chunk."""

    path: str
    mode: int
    at: int
    offset: int
    size: int
    whole: bool


class Chunk(NamedTuple):
    """Bytes of the tar. `stored` and `length` are where they lie in the archive."""

    pieces: list[Piece]
    size: int
    stored: int
    length: int


class Large(NamedTuple):
    """A file that is copied from where it lies; a part of it, when it is."""

    path: str
    mode: int
    size: int
    changed: int
    offset: int = 0


class Index(NamedTuple):
    """What is needed to unpack without reading the archive first."""

    folders: list[tuple[str, int]]
    links: list[tuple[str, str]]
    chunks: list[Chunk]
    large: list[Large]
    is_compressed: bool
    files: int
    size: int

    def to_json(self) -> str:
        return json.dumps(self)

    @classmethod
    def from_json(cls, text: str) -> Index:
        folders, links, chunks, large, is_compressed, files, total = json.loads(text)
        return cls(
            [(path, mode) for path, mode in folders],
            [(path, target) for path, target in links],
            [
                Chunk([Piece(*piece) for piece in pieces], size, stored, length)
                for pieces, size, stored, length in chunks
            ],
            [Large(*file) for file in large],
            is_compressed,
            files,
            total,
        )


class Draft(NamedTuple):
    """A chunk before it is written: its headers, at their places in it, are known already."""

    chunk: Chunk
    headers: list[tuple[int, bytes]]


def pack(
    root: str, entries: Sequence[Entry], archive: str, workers: int, tell: Callable[[int], None]
) -> Index:
    """Write the archive. `tell` hears how many bytes were read since it was called last."""
    is_compressed = _compresses(root, entries)
    # Where it gets a lot smaller, a large file is packed too.
    limit = sys.maxsize if is_compressed else LARGE
    large = [file for file in entries if file.size >= limit]
    drafts, end = _layout([file for file in entries if file.size < limit])
    handle = os.open(archive, os.O_CREAT | os.O_RDWR | os.O_TRUNC, 0o600)
    try:
        if is_compressed:
            chunks = _write_compressed(handle, root, drafts, workers, tell)
        else:
            chunks = [draft.chunk for draft in drafts]
            os.ftruncate(handle, end + 2 * _BLOCK)  # A tar ends with two empty blocks.
            in_processes(drafts, workers, lambda draft: _write_plain(handle, root, draft), tell)
        os.fsync(handle)
    finally:
        os.close(handle)
    files = [entry for entry in entries if entry.kind == "file"]
    return Index(
        [(entry.path, entry.mode) for entry in entries if entry.kind == "folder"],
        [(entry.path, entry.target) for entry in entries if entry.kind == "link"],
        [chunk for chunk in chunks if chunk.pieces],
        [Large(file.path, file.mode, file.size, file.changed) for file in large],
        is_compressed,
        len(files),
        sum(entry.size for entry in files),
    )


def unpack(
    root: str, archive: str, index: Index, into: str, workers: int, tell: Callable[[int], None]
) -> None:
    """Write everything below `into`; Damaged where the archive is, ValueError for all else."""
    for path, _mode in index.folders:
        os.makedirs(f"{into}/{path}", mode=0o700, exist_ok=True)
    handle = os.open(archive, os.O_RDONLY)
    parts: list[Chunk | Large] = [
        file._replace(offset=offset)
        for file in index.large
        for offset in range(0, file.size, _PART)
    ]

    last = _LastOpened()

    def place(part: Chunk | Large) -> int:
        if isinstance(part, Large):
            return _copy_part(last.open(f"{root}/{part.path}"), part, into)
        return _read_chunk(handle, index, part, into)

    try:
        in_processes([*parts, *index.chunks], workers, place, tell)
    finally:
        os.close(handle)
    for path, target in index.links:
        if os.path.lexists(f"{into}/{path}"):
            os.unlink(f"{into}/{path}")
        os.symlink(target, f"{into}/{path}")
    # Last: these may forbid writing, and a file is in several hands.
    for chunk in index.chunks:
        for piece in chunk.pieces:
            if not piece.whole and not piece.offset and not piece.mode & stat.S_IWUSR:
                os.chmod(f"{into}/{piece.path}", piece.mode)
    for file in index.large:
        os.chmod(f"{into}/{file.path}", file.mode)
    for path, mode in reversed(index.folders):
        os.chmod(f"{into}/{path}", mode)


def _layout(entries: Sequence[Entry]) -> tuple[list[Draft], int]:
    """Where everything will stand in the tar, and where that ends."""
    drafts: list[Draft] = []
    headers: list[tuple[int, bytes]] = []
    pieces: list[Piece] = []
    start = at = 0

    def cut() -> None:
        nonlocal headers, pieces, start
        drafts.append(Draft(Chunk(pieces, at - start, start, at - start), headers))
        headers, pieces, start = [], [], at

    for entry in entries:
        header = _header(entry)
        headers.append((at - start, header))
        at += len(header)
        done = 0
        while entry.kind == "file" and (done < entry.size or not entry.size):
            part = min(entry.size - done, max(_BLOCK, CHUNK - (at - start)))
            if part < entry.size - done:
                part -= part % _BLOCK
            whole = part == entry.size
            pieces.append(Piece(entry.path, entry.mode, at - start, done, part, whole))
            done += part
            at += part + (-part % _BLOCK if done == entry.size else 0)
            if at - start >= CHUNK or len(pieces) >= _FILES:
                cut()
            if not entry.size:
                break
    cut()
    return drafts, at


def _header(entry: Entry) -> bytes:
    info = tarfile.TarInfo(entry.path)
    info.mode, info.mtime = entry.mode, entry.changed // 10**9
    if entry.kind == "file":
        info.size = entry.size
    elif entry.kind == "link":
        info.type, info.linkname = tarfile.SYMTYPE, entry.target
    else:
        info.type = tarfile.DIRTYPE
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def _compresses(root: str, entries: Sequence[Entry]) -> bool:
    """Whether a little of everything gets a lot smaller."""
    files = [entry for entry in entries if entry.kind == "file" and entry.size]
    total = sum(entry.size for entry in files)
    if total < CHUNK:
        return False
    sample = bytearray()
    for entry in files[:: max(1, len(files) // 64)]:
        with open(f"{root}/{entry.path}", "rb") as file:
            sample += file.read(_SAMPLE // 32)
        if len(sample) > _SAMPLE:
            break
    return len(zlib.compress(bytes(sample), 1)) < _PAYS * len(sample)


def _tar_bytes(root: str, draft: Draft) -> bytearray:
    """A chunk of the tar, as it stands in it."""
    buffer = bytearray(draft.chunk.size)
    for at, header in draft.headers:
        buffer[at : at + len(header)] = header
    view = memoryview(buffer)
    for piece in draft.chunk.pieces:
        handle = os.open(f"{root}/{piece.path}", os.O_RDONLY)
        try:
            done = 0
            while done < piece.size:
                part = view[piece.at + done : piece.at + piece.size]
                read = os.preadv(handle, [part], piece.offset + done)
                if not read:
                    raise ValueError(f"{piece.path} became shorter while it was packed")
                done += read
        finally:
            os.close(handle)
    return buffer


def _write_plain(handle: int, root: str, draft: Draft) -> int:
    _write_at(handle, _tar_bytes(root, draft), draft.chunk.stored)
    return sum(piece.size for piece in draft.chunk.pieces)


def _write_compressed(
    handle: int, root: str, drafts: Sequence[Draft], workers: int, tell: Callable[[int], None]
) -> list[Chunk]:
    """Where a chunk lies is known only when those before it are pressed: in threads, in order."""
    from concurrent.futures import ThreadPoolExecutor  # zlib lets other threads run.

    def press(draft: Draft) -> bytes:
        return gzip.compress(_tar_bytes(root, draft), 1, mtime=0)

    written, at, some = [], 0, 4 * workers
    with ThreadPoolExecutor(workers) as pool:
        for start in range(0, len(drafts), some):
            now = drafts[start : start + some]
            for draft, pressed in zip(now, pool.map(press, now), strict=True):
                _write_at(handle, pressed, at)
                written.append(draft.chunk._replace(stored=at, length=len(pressed)))
                at += len(pressed)
                tell(sum(piece.size for piece in draft.chunk.pieces))
    _write_at(handle, gzip.compress(bytes(2 * _BLOCK), 1, mtime=0), at)
    return written


def _read_chunk(handle: int, index: Index, chunk: Chunk, into: str) -> int:
    raw = _read_at(handle, chunk.length, chunk.stored)
    if index.is_compressed:
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise Damaged(f"the archive is damaged: {error}") from error
    if len(raw) != chunk.size:
        raise Damaged(f"the archive is damaged: {len(raw)} bytes instead of {chunk.size}")
    view = memoryview(raw)
    for piece in chunk.pieces:
        more = os.O_CREAT | (os.O_TRUNC if piece.whole else 0)
        target = _open_to_write(f"{into}/{piece.path}", piece.mode, more)
        try:
            _write_at(target, view[piece.at : piece.at + piece.size], piece.offset)
            if piece.whole and not piece.mode & stat.S_IWUSR:
                os.fchmod(target, piece.mode)
        finally:
            os.close(target)
    return sum(piece.size for piece in chunk.pieces)


class _LastOpened:
    """The file that was read last, in this process: network file systems begin anew to read ahead,
    and forget what they have, with each opening."""

    def __init__(self) -> None:
        self._path, self._handle = "", -1

    def open(self, path: str) -> int:
        if path != self._path:
            if self._handle >= 0:
                os.close(self._handle)
            self._path, self._handle = path, os.open(path, os.O_RDONLY)
        return self._handle


def _copy_part(source: int, part: Large, into: str) -> int:
    target = _open_to_write(f"{into}/{part.path}", part.mode, os.O_CREAT)
    try:
        about = os.fstat(source)
        if (about.st_size, about.st_mtime_ns) != (part.size, part.changed):
            raise ValueError(f"{part.path} was changed while it was copied")
        at, end = part.offset, min(part.offset + _PART, part.size)
        os.lseek(target, at, os.SEEK_SET)
        while at < end:
            # The kernel copies: nothing passes through this process.
            copied = os.sendfile(target, source, at, end - at)
            if not copied:
                raise ValueError(f"{part.path} became shorter while it was copied")
            at += copied
    finally:
        os.close(target)
    return end - part.offset


def _open_to_write(path: str, mode: int, more: int) -> int:
    how, mode = os.O_WRONLY | more, mode | stat.S_IWUSR
    try:
        return os.open(path, how, mode)
    except PermissionError:  # Unpacking was cut off here before, behind a file that is not to be
        os.chmod(path, mode)  # written to.
        return os.open(path, how, mode)


def _read_at(handle: int, size: int, at: int) -> bytes:
    """All of it, or what is there: some file systems give less at a time than they are asked."""
    raw = os.pread(handle, size, at)
    while len(raw) < size and (more := os.pread(handle, size - len(raw), at + len(raw))):
        raw += more
    return raw


def _write_at(handle: int, data: bytes | bytearray | memoryview, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(handle, view, at)
        view, at = view[written:], at + written
