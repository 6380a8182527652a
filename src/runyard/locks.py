"""A lock on the state folder. The kernel releases it when its holder dies, however it dies."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Only then: the agent on every node loads this module.
    from pathlib import Path

# Lustre without the mount option `flock` and some FUSE file systems answer with one of these.
_NO_LOCKS_HERE = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL}
# Not TMPDIR: jobs and shells have their own TMPDIR, so their locks would not exclude each other.
_STAND_INS = "/tmp"  # noqa: S108 - Each file there is checked.


class FolderLock:
    """An exclusive lock named by a path. Held until `release`, or the end of the process.

    On NFS it works between machines. If the file system has no locks, the lock is taken on a
    local file instead, and then holds for this machine only.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = path
        self._handle: int | None = None
        self.this_machine_only = False

    def is_free(self) -> bool:
        """Whether nobody holds it. This call disturbs neither other calls nor `acquire`."""
        # Opened for reading and never created, so this call leaves no file behind.
        try:
            taken = self._acquire(fcntl.LOCK_SH, 0.0, os.O_RDONLY)
        except FileNotFoundError:
            return True
        self.release()
        return taken

    def acquire(self, timeout: float = 0.0) -> bool:
        """Take the lock; wait at most `timeout` seconds. Returns whether it was taken."""
        # The shared lock of `is_free` lasts microseconds; it must not make this call fail.
        return self._acquire(fcntl.LOCK_EX, max(timeout, 0.5), os.O_RDWR | os.O_CREAT)

    def _acquire(self, kind: int, timeout: float, mode: int) -> bool:
        end = time.monotonic() + timeout
        handle = self._open(mode)
        while True:
            try:
                fcntl.flock(handle, kind | fcntl.LOCK_NB)
                self._handle = handle
                return True
            except BlockingIOError:
                if time.monotonic() >= end:
                    os.close(handle)
                    return False
                time.sleep(0.02)
            except OSError as error:
                os.close(handle)
                if error.errno not in _NO_LOCKS_HERE or self.this_machine_only:
                    raise
                self.this_machine_only = True
                handle = self._open(mode)

    def _open(self, mode: int) -> int:
        path = _local_stand_in(self._path) if self.this_machine_only else self._path
        return os.open(path, mode | os.O_CLOEXEC, 0o600)

    @property
    def handles(self) -> tuple[int, ...]:
        """The file descriptors of the lock. A process that inherits them holds the lock too; it is
        free when the last of them has ended."""
        return () if self._handle is None else (self._handle,)

    def release(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _local_stand_in(path: Path | str) -> Path:
    from pathlib import Path

    name = os.fsencode(path)
    usual = Path(_STAND_INS) / f"runyard-locks-{os.geteuid()}"
    # Where another user has taken that name: one that they cannot guess, since they do not see the
    # number of a file in a private folder. Once it is there, all agree on it.
    number = Path(path).stat().st_ino
    other = usual.with_name(f"{usual.name}.{_hash(b'%s:%d' % (name, number))}")
    for folder in (other,) if _is_own(other) else (usual, other):
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700, exist_ok=True)
        if _is_own(folder):
            return folder / _hash(name)
    raise PermissionError(errno.EACCES, "belongs to another user", str(usual))


def _is_own(folder: Path) -> bool:
    try:
        about = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid()


def _hash(content: bytes) -> str:
    import hashlib

    return hashlib.sha256(content).hexdigest()[:16]
