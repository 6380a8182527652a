"""What the processes of a program use together, as the kernel tells it in /proc."""

from __future__ import annotations

import contextlib
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TICKS = os.sysconf("SC_CLK_TCK")
_KIB = 1024
# Reading shared memory's fair share walks all pages: of the time, at most this part is spent on it;
# ten times as much where a program runs only to be looked at.
_PSS_SHARE = 0.005
OFTEN = 10 * _PSS_SHARE


class Total:
    """Of one program's processes: bytes, seconds."""

    __slots__ = ("cpu_seconds", "memory", "read", "resident", "written")

    def __init__(self) -> None:
        self.memory = self.read = self.written = 0
        self.resident = 0
        """What they hold now; what several share counts for each."""
        self.cpu_seconds = 0.0


class Pss:
    """When the proportional sizes of a program are read next: large programs less often."""

    def __init__(self, share: float = _PSS_SHARE) -> None:
        self.due = 0.0
        self._share = share

    def is_due(self) -> bool:
        return time.monotonic() >= self.due

    def took(self, seconds: float) -> None:
        self.due = time.monotonic() + seconds / self._share


def descendants(roots: Iterable[int]) -> dict[int, list[int]]:
    """Each root and its children's children, as far as they live."""
    roots = list(roots)
    if not roots:
        return {}
    if os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
        return {root: _grown([root], _children) for root in roots}
    parents = _by_parent()  # A kernel without lists of children: one pass over all processes.
    return {root: _grown([root], lambda pid: parents.get(pid, [])) for root in roots}


def grown(pids: Iterable[int]) -> list[int]:
    """These, each once, and their children's children."""
    return _grown(list(dict.fromkeys(pids)), _children)


def is_called(pid: int, *names: str) -> bool:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as file:
        return file.read().strip() in names
    return False


def _grown(pids: list[int], children: Callable[[int], list[int]]) -> list[int]:
    for pid in pids:
        pids += [child for child in children(pid) if child not in pids]
    return pids


def _children(pid: int) -> list[int]:
    children: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as file:
                children += map(int, file.read().split())
    return children


def _by_parent() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdecimal():
                fields = _stat(int(name))
                if fields:
                    children.setdefault(int(fields[1]), []).append(int(name))
    return children


def add_up(pids: Iterable[int], pss: Pss | None) -> Total:
    """Processes together. With `pss`, memory is proportional: what several share counts once.

    Without, the largest single process' own peak, which the kernel keeps, has to do.
    """
    total = Total()
    # CPU time: on a busy machine, waiting for one's turn is nobody's cost.
    begun, together, largest = time.process_time(), 0, 0
    for pid in pids:
        fields = _stat(pid)
        if not fields:
            continue
        # Its own, and those of children that it has waited for.
        total.cpu_seconds += sum(map(int, fields[11:15])) / TICKS
        read, written = _moved(pid)
        total.read += read
        total.written += written
        peak, resident = _sizes(pid)
        largest = max(largest, peak)
        total.resident += resident
        together += _proportional(pid) if pss is not None else 0
    if pss is not None:
        pss.took(time.process_time() - begun)
    total.memory = max(together, largest)
    return total


def cpu_ticks(pid: int) -> int:
    """What a process has used of the CPU; 0 if it is gone."""
    return sum(map(int, _stat(pid)[11:13]))


def _stat(pid: int) -> list[bytes]:
    """The fields of a process from its state on; none if it is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()
    return []


def _sizes(pid: int) -> tuple[int, int]:
    """Its own peak, and what it holds now."""
    sizes = _lines(f"/proc/{pid}/status", (b"VmHWM:", b"VmRSS:"))
    return sizes.get(b"VmHWM:", 0), sizes.get(b"VmRSS:", 0)


def _proportional(pid: int) -> int:
    return _lines(f"/proc/{pid}/smaps_rollup", (b"Pss:",)).get(b"Pss:", 0)


def _lines(path: str, names: tuple[bytes, ...]) -> dict[bytes, int]:
    values: dict[bytes, int] = {}
    with contextlib.suppress(OSError, ValueError, IndexError), open(path, "rb") as file:
        for line in file:
            if line.startswith(names):
                words = line.split()
                values[words[0]] = int(words[1]) * _KIB
                if len(values) == len(names):
                    break
    return values


def _moved(pid: int) -> tuple[int, int]:
    """Bytes from and to storage."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/io", "rb") as file:
        counters = dict(line.split(b": ") for line in file.read().splitlines())
        return int(counters.get(b"read_bytes", 0)), int(counters.get(b"write_bytes", 0))
    return 0, 0
