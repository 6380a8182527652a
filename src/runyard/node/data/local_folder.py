"""A job's own folder on a node's disk: made where the site gives none, and gone when the job is.

Its name is the job's; who works in it holds a shared lock on it, which the kernel takes back
however the holder dies. So a folder that nobody holds is a left-over, and whoever comes next on the
node removes it: never one of a job that lives. A detached process removes it as soon as the last
holder is gone, also where that was killed.

The folders of all jobs are in one folder of the user's, the base. Where somebody else has taken its
name, they are in another one beside it, with a name that nobody can guess. Tasks find it by owner.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import signal
import stat
import time

from runyard.node.system.processes import MOST_HANDLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_LOCK = ".runyard-lock"
# What follows the usual base's name in that of another, and how many letters then follow.
_OTHER, _OTHER_LENGTH = ".runyard-", 16
_LOCK_SECONDS = 5.0
# A folder is made a moment before its lock is.
_YOUNG_SECONDS = 60.0
_OWN_SIGNALS = (signal.SIGUSR1, signal.SIGUSR2)


class LocalFolder:
    """Held from `hold` until `release` or the end of this process."""

    def __init__(self, base: str, name: str) -> None:
        self.usual_base, self._name = base, name
        self._base: str | None = None
        self._handle: int | None = None

    @property
    def path(self) -> str:
        """Where it is, also before it is held here; or where it would be made."""
        return f"{self._base or _find_base(self.usual_base, self._name)}/{self._name}"

    @property
    def is_usual(self) -> bool:
        return self.path == f"{self.usual_base}/{self._name}"

    def hold(self) -> None:
        """Make it, or join it: tasks of one job on one node share it."""
        self._base = _make_base(self.usual_base, self._name)
        while True:
            # Not `makedirs`: it fails where another task removes the folder that it just met.
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.path, mode=0o700)
            try:
                handle = os.open(f"{self.path}/{_LOCK}", os.O_RDWR | os.O_CREAT, 0o600)
                fcntl.flock(handle, fcntl.LOCK_SH)
            except FileNotFoundError:
                continue  # Another task has just removed it as a left-over: once more.
            if _is_linked(handle, f"{self.path}/{_LOCK}"):
                self._handle = handle
                return
            os.close(handle)

    def release(self) -> None:
        """Remove it, unless somebody else is still in it."""
        if self._handle is None:
            return
        os.close(self._handle)
        self._handle = None
        remove_unheld(self.path)

    def remove_when_alone(self) -> None:
        """Leave a process behind that removes it when all holders are gone, also if killed."""
        assert self._handle is not None
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
            return
        try:
            # Nobody's child: a scheduler may kill a task's children. Where the site tracks by
            # cgroup it finds this too, and the next job on this node removes what is left.
            if os.fork():
                os._exit(0)
            os.setsid()
            for signal_number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, *_OWN_SIGNALS):
                signal.signal(signal_number, signal.SIG_IGN)
            os.chdir("/")
            nothing = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(nothing, number)
            handle = os.open(f"{self.path}/{_LOCK}", os.O_RDWR)
            os.closerange(3, handle)  # What our parent waits for is not ours to hold.
            os.closerange(handle + 1, MOST_HANDLES)
            fcntl.flock(handle, fcntl.LOCK_EX)
            if _is_linked(handle, f"{self.path}/{_LOCK}"):
                _remove(self.path)
        finally:
            os._exit(0)


def make_private(base: str) -> None:
    """The user's own folder on a disk that all share: refused where it is somebody else's."""
    os.makedirs(base, mode=0o700, exist_ok=True)
    if not is_own(base):
        raise PermissionError(errno.EACCES, "it belongs to somebody else", base)
    os.chmod(base, 0o700)


def _make_base(usual: str, name: str) -> str:
    base = _find_base(usual, name)
    if not _is_taken(base):
        make_private(base)
        return base
    with _one_at_a_time(os.path.dirname(usual)):
        base = _find_base(usual, name)  # Another task may have made it meanwhile.
        if _is_taken(base):
            base = f"{usual}{_OTHER}{os.urandom(_OTHER_LENGTH // 2).hex()}"
            os.mkdir(base, mode=0o700)
    return base


@contextlib.contextmanager
def _one_at_a_time(folder: str) -> Iterator[None]:
    """A lock that others can take as well, so it is not waited for without end."""
    end = time.monotonic() + _LOCK_SECONDS
    with contextlib.ExitStack() as closing:
        with contextlib.suppress(OSError):  # Some file systems have no such locks.
            handle = os.open(folder, os.O_RDONLY)
            closing.callback(os.close, handle)
            while not _take(handle) and time.monotonic() < end:
                time.sleep(0.01)
        yield


def _find_base(usual: str, name: str) -> str:
    """The base that has the folder of this name, or where it would be made."""
    bases = own_bases(usual)
    holding = (base for base in bases if os.path.isdir(f"{base}/{name}"))
    if not bases or not _is_taken(usual):
        return next(holding, usual)
    return next(holding, bases[0])


def _is_taken(base: str) -> bool:
    return os.path.lexists(base) and not is_own(base)


def own_bases(usual: str) -> list[str]:
    """The user's own: the usual one, and those made where somebody else had taken its name."""
    above, _, beginning = f"{usual}{_OTHER}".rpartition("/")
    length = len(beginning) + _OTHER_LENGTH
    try:
        names = sorted(os.listdir(above or "/"))
    except OSError:
        names = []
    others = [
        f"{above}/{name}" for name in names if name.startswith(beginning) and len(name) == length
    ]
    return [base for base in (usual, *others) if is_own(base)]


def is_own(base: str) -> bool:
    """Whether it is a folder of the user's, and no link: that may lead to their other folders."""
    try:
        about = os.lstat(base)
    except OSError:
        return False
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid()


def folders_in(usual: str) -> list[str]:
    """The folders of all jobs."""
    paths = []
    for base in own_bases(usual):
        with contextlib.suppress(FileNotFoundError):
            paths += [f"{base}/{name}" for name in sorted(os.listdir(base))]
    return paths


def left_overs(usual: str) -> Iterator[str]:
    """Folders whose jobs are gone."""
    for path in folders_in(usual):
        with _unheld(path) as is_left:
            if not is_left:
                continue
        yield path


def sweep(usual: str) -> list[str]:
    """Remove what jobs left behind on this node; the names of what was removed."""
    return [path for path in left_overs(usual) if remove_unheld(path)]


def remove_unheld(path: str) -> bool:
    """Remove a folder if nobody holds it. Says whether it was removed."""
    with _unheld(path) as is_left:
        if is_left:
            _remove(path)
    return is_left


@contextlib.contextmanager
def _unheld(path: str) -> Iterator[bool]:
    """Whether a folder's holder is gone; where it is, nobody else holds it meanwhile."""
    try:
        handle = os.open(f"{path}/{_LOCK}", os.O_RDWR)
    except FileNotFoundError:
        yield _is_old(path)
        return
    except OSError:
        yield False
        return
    try:
        yield _take(handle) and _is_linked(handle, f"{path}/{_LOCK}")
    finally:
        os.close(handle)


def _is_old(path: str) -> bool:
    """Whether a folder has been without a lock for longer than making one takes."""
    try:
        return time.time() - os.stat(path).st_mtime > _YOUNG_SECONDS
    except OSError:
        return False


def _take(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_linked(handle: int, path: str) -> bool:
    """Whether the lock is still the folder's, and not that of one which was removed meanwhile."""
    try:
        there = os.stat(path)
    except OSError:
        return False
    return os.fstat(handle).st_ino == there.st_ino


def _remove(path: str) -> None:
    """Aside first, so that nobody joins what is being removed."""
    aside = f"{os.path.dirname(path)}/.gone-{os.getpid()}-{time.monotonic_ns()}"
    try:
        os.rename(path, aside)
    except FileNotFoundError:
        return
    shutil.rmtree(aside, onerror=_make_writable)


def _make_writable(_function: object, path: str, _why: object) -> None:
    """A program may have left folders that forbid writing."""
    above = os.path.dirname(path)
    try:
        os.chmod(above, 0o700)
        os.chmod(path, 0o700)
        shutil.rmtree(path, ignore_errors=True)
        if os.path.lexists(path):
            os.unlink(path)
    except OSError:
        return  # What cannot be removed stays, and is told of by the next `runyard clean`.
