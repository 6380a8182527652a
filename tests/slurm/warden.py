"""Ends what belongs to a cluster's folder: processes first, then the folder itself.

Run as a program it waits for the cluster's owner to end, however it ends, and cleans up after it.
A parent-death signal on the daemons would not do: job steps outlive their slurmd by design.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Collection, Iterable
from pathlib import Path

PROC = Path("/proc")
POLL_SECONDS = 0.02


def processes_of(folder: Path, spare: Collection[int] = ()) -> set[int]:
    """Processes that name the folder in their command or environment.

    Their descendants belong to it too: a job may well have emptied its environment. The caller
    and the caller's ancestors never do.
    """
    parents = {pid: _parent(pid) for pid in _all_pids()}
    found = {pid for pid in parents if _mentions(pid, os.fsencode(folder))}
    found -= _with_ancestors(os.getpid(), parents) | set(spare)
    while more := {pid for pid, parent in parents.items() if parent in found} - found - set(spare):
        found |= more
    return found


def processes_with(variable: str, folder: Path) -> set[int]:
    """Of the folder's processes those with this in their environment, and who started them for
    Slurm."""
    found = set()
    for pid in processes_of(folder):
        try:
            environ = (PROC / str(pid) / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if variable.encode() in environ:
            found |= {pid, *([_parent(pid)] if _is_step(_parent(pid)) else [])}
    return found


def end_processes(folder: Path, spare: Collection[int] = (), timeout: float = 10) -> None:
    """Kill the folder's processes and return once none is left."""
    deadline = time.monotonic() + timeout
    while pids := processes_of(folder, spare):
        _kill(pids)
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes of {folder} outlive SIGKILL: {sorted(pids)}")
        time.sleep(POLL_SECONDS)


def watch(owner: int, folder: Path) -> None:
    """Wait for the owner to end, then remove everything that is the cluster's."""
    try:
        owner_handle = os.pidfd_open(owner)
    except ProcessLookupError:
        pass
    else:
        # A reused process id is told from the owner's own by who our parent is.
        if os.getppid() == owner:
            select.select([owner_handle], [], [])
    try:
        end_processes(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _all_pids() -> Iterable[int]:
    return (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())


def _parent(pid: int) -> int:
    try:
        stat = (PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return 0
    # The name in parentheses may hold spaces and parentheses itself.
    return int(stat.rpartition(b")")[2].split()[1])


def _mentions(pid: int, folder: bytes) -> bool:
    entry = PROC / str(pid)
    try:
        if os.geteuid() not in (0, entry.stat().st_uid):
            return False  # Another user's process, which only happens to name the folder.
        if any(folder in (entry / part).read_bytes() for part in ("cmdline", "environ")):
            return True
        # From 24.11 on a step's daemon names no folder anywhere; its log is open.
        return _is_step(pid) and any(
            os.fsencode(handle.readlink()).startswith(folder + b"/")
            for handle in (entry / "cwd", *(entry / "fd").iterdir())
        )
    except OSError:
        return False


def _is_step(pid: int) -> bool:
    try:
        return b"slurmstepd" in (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return False


def _with_ancestors(pid: int, parents: dict[int, int]) -> set[int]:
    line = set()
    while pid and pid not in line:
        line.add(pid)
        pid = parents.get(pid, 0)
    return line


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


if __name__ == "__main__":
    watch(owner=int(sys.argv[1]), folder=Path(sys.argv[2]))
