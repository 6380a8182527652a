"""One holder at a time, whatever becomes of the holder."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runyard import locks
from runyard.locks import FolderLock

_HOLDER = (
    "import sys\n"
    "from pathlib import Path\n"
    "from runyard.locks import FolderLock\n"
    "lock = FolderLock(Path(sys.argv[1]))\n"
    "print(lock.acquire(), flush=True)\n"
    "sys.stdin.read()\n"
)


@contextmanager
def another_process_holding(path: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        yield holder
        holder.kill()


def test_it_is_one_processs_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with another_process_holding(path):
        lock = FolderLock(path)
        assert not lock.is_free()
        assert not lock.acquire()
    with FolderLock(path) as lock:
        assert lock.acquire()


def test_the_kernel_gives_it_back_when_the_holder_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with another_process_holding(path) as holder:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert FolderLock(path).is_free()
        with FolderLock(path) as lock:
            assert lock.acquire()


def test_a_waiter_gets_it_when_the_holder_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with another_process_holding(path) as holder:
        waiter = subprocess.Popen(
            [sys.executable, "-c", _HOLDER.replace("acquire()", "acquire(60)"), str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        holder.kill()
        assert waiter.communicate(timeout=60)[0] == b"True\n"


def test_two_in_one_process_exclude_each_other_as_well(tmp_path: Path) -> None:
    with FolderLock(tmp_path / "lock") as one, FolderLock(tmp_path / "lock") as other:
        assert one.acquire()
        assert not other.acquire()
        one.release()
        assert other.acquire()


def test_asking_disturbs_nobody(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with FolderLock(path) as lock:
        assert FolderLock(path).is_free()
        assert not path.exists()
        assert lock.acquire()
        for _ in range(100):
            assert not FolderLock(path).is_free()
        assert not FolderLock(path).acquire()
        lock.release()
        for _ in range(100):
            assert FolderLock(path).is_free()


def test_a_taker_is_not_turned_away_by_an_asker(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    asking = (
        "import sys\n"
        "from pathlib import Path\n"
        "from runyard.locks import FolderLock\n"
        "print(flush=True)\n"
        "while True: FolderLock(Path(sys.argv[1])).is_free()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", asking, str(path)], stdout=subprocess.PIPE
    ) as asker:
        assert asker.stdout is not None
        asker.stdout.readline()
        for _ in range(20):
            with FolderLock(path) as lock:
                assert lock.acquire()
        asker.kill()


def test_a_child_does_not_keep_it(tmp_path: Path) -> None:
    with FolderLock(tmp_path / "lock") as lock:
        assert lock.acquire()
        with subprocess.Popen(["sleep", "60"], close_fds=False) as child:
            lock.release()
            assert FolderLock(tmp_path / "lock").is_free()
            child.kill()


@pytest.fixture
def no_locks_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Path:
    """A folder on a file system without locks. Stands in for Lustre mounted without `flock`."""
    folder, local = tmp_path / "lustre", tmp_path / "local"
    folder.mkdir()
    local.mkdir()
    real = fcntl.flock

    def flock(handle: int, kind: int) -> None:
        if Path(f"/proc/self/fd/{handle}").readlink().is_relative_to(folder):
            raise OSError(request.param, os.strerror(request.param))
        real(handle, kind)

    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setattr(locks, "_STAND_INS", local)
    return folder


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("no_locks_in", [errno.ENOSYS, errno.EOPNOTSUPP], indirect=True)
def test_without_locks_it_holds_for_this_machine(no_locks_in: Path) -> None:
    with FolderLock(no_locks_in / "lock") as one, FolderLock(no_locks_in / "lock") as other:
        assert one.acquire()
        assert one.this_machine_only
        assert not other.acquire()
        assert not other.is_free()
        assert other.this_machine_only
        one.release()
        assert other.is_free()
        assert other.acquire()
    with FolderLock(no_locks_in / "another") as lock:
        assert lock.acquire()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("no_locks_in", [errno.ENOSYS], indirect=True)
def test_a_stand_in_whose_name_another_user_took_has_another_name(
    no_locks_in: Path, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    usual = tmp_path / "local" / f"runyard-locks-{os.geteuid()}"
    usual.symlink_to(theirs)
    with FolderLock(no_locks_in / "lock") as one, FolderLock(no_locks_in / "lock") as other:
        assert one.acquire()
        assert not other.acquire()
        assert not FolderLock(no_locks_in / "lock").is_free()
        usual.unlink()  # The name is free again: the lock is still held.
        assert not other.acquire()
        one.release()
        assert other.acquire()
    assert list(theirs.iterdir()) == []
    (folder,) = (tmp_path / "local").iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700


def test_where_nothing_can_be_locked_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(_handle: int, _kind: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setattr(locks, "_STAND_INS", tmp_path)
    with pytest.raises(OSError, match="not implemented"):
        FolderLock(tmp_path / "lock").acquire()


def test_a_failure_of_another_kind_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(_handle: int, _kind: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(OSError, match="Input/output"):
        FolderLock(tmp_path / "lock").acquire()
