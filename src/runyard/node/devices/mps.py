"""NVIDIA's MPS: programs on one GPU compute at the same time, instead of taking turns.

One daemon an agent, with folders of its own that nobody else may enter. It carries a mark like an
attempt's, so the keeper ends it if the agent is killed; what survives even that, the next agent on
the machine ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time

from runyard.node.devices.gpus import ask_driver
from runyard.node.system import processes
from runyard.node.system.processes import NotStarted, launch
from runyard.schedulers.inside import this_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runyard.node.attempt.keeper import Keeper

_DAEMON = "nvidia-cuda-mps-control"
_GPUS = "CUDA_VISIBLE_DEVICES"
_READY_SECONDS = 10.0
_QUIT_SECONDS = 10.0
# The address of a local socket has room for 107 letters.
_LONGEST_FOLDER = 60
_ANY_NODES = "/tmp"  # noqa: S108 - Below it, our own folder is checked.
_NOTE = "daemon.json"


class NoMps(Exception):
    """MPS cannot be had here, and why."""


class Mps:
    """A daemon of ours. `variables` are for the programs that are to use it; `uuids` are its GPUs,
    by the names that they had."""

    def __init__(self, folder: str, pid: int, token: str, uuids: dict[str, str]) -> None:
        self.folder = folder
        self.pid = pid
        self.token = token
        self._uuids = uuids
        self.variables = {
            "CUDA_MPS_PIPE_DIRECTORY": f"{folder}/pipe",
            "CUDA_MPS_LOG_DIRECTORY": f"{folder}/log",
        }

    def settings(self, values: Mapping[str, str]) -> dict[str, str]:
        """A program's variables, with the daemon's, and its GPUs by the names that hold there."""
        names = values.get(_GPUS, "")
        uuids = [self._uuids.get(name, name) for name in names.split(",")]
        return {**values, **({_GPUS: ",".join(uuids)} if names else {}), **self.variables}

    def keep_with(self, keeper: Keeper) -> None:
        keeper.began(self.pid, self.token)

    def end(self, keeper: Keeper) -> None:
        """Ask it to go, and see that it does; its folder goes too."""
        _quit(self.folder)
        processes.end_groups({self.pid: None}, [self.token], _QUIT_SECONDS)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)
        keeper.ended(self.token)
        shutil.rmtree(self.folder, ignore_errors=True)


def start_mps(
    gpus: tuple[str, ...],
    environ: Mapping[str, str],
    keeper: Keeper,
    driver: Callable[[], list[str]] = ask_driver,
) -> Mps:
    """Start the daemon for these GPUs; `NoMps` says why not. `driver` lists the machine's UUIDs."""
    if environ.get("CUDA_MPS_PIPE_DIRECTORY"):
        raise NoMps("CUDA_MPS_PIPE_DIRECTORY is set: the MPS that is there is used as it is")
    if shutil.which(_DAEMON, path=environ.get("PATH")) is None:
        raise NoMps(f"{_DAEMON} is not on the PATH")
    uuids = _find_uuids(gpus, driver)
    above = _folder_above(environ)
    end_stale(above)
    token = os.urandom(8).hex()
    folder = f"{above}/{token}"
    for part in (folder, f"{folder}/pipe", f"{folder}/log"):
        os.mkdir(part, 0o700)
    environ = {
        **environ,
        _GPUS: ",".join(uuids[name] for name in gpus),
        "CUDA_MPS_PIPE_DIRECTORY": f"{folder}/pipe",
        "CUDA_MPS_LOG_DIRECTORY": f"{folder}/log",
        processes.MARK: token,
    }
    output = os.open(f"{folder}/log/said", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    keeper.begins(token)
    try:
        pid = launch([_DAEMON, "-f"], environ, folder, output)
    except (NotStarted, OSError) as error:
        keeper.ended(token)
        shutil.rmtree(folder, ignore_errors=True)
        raise NoMps(str(error)) from error
    finally:
        os.close(output)
    keeper.began(pid, token)
    _note(folder, pid, token)
    mps = Mps(folder, pid, token, uuids)
    if not _becomes_ready(folder, pid):
        complaint = _said(folder)
        mps.end(keeper)
        raise NoMps(f"{_DAEMON} does not start: {complaint}")
    return mps


def _find_uuids(gpus: tuple[str, ...], driver: Callable[[], list[str]]) -> dict[str, str]:
    """Name -> UUID. The daemon's programs count its GPUs from 0, whatever numbers it was given: of
    `2,3` the second is 1 for them. UUIDs mean the same on both sides, as NVIDIA advises."""
    numbers = [name for name in gpus if name.isdecimal()]
    there = driver() if numbers else []
    if all(int(name) < len(there) for name in numbers):
        return {name: there[int(name)] if name in numbers else name for name in gpus}
    if list(gpus) != [str(number) for number in range(len(gpus))]:
        raise NoMps(f"the driver does not tell the UUIDs of GPUs {', '.join(numbers)}")
    return {name: name for name in gpus}


def end_stale(above: str) -> None:
    """End daemons whose agent and keeper are both gone, and remove their folders."""
    with contextlib.suppress(OSError):
        for name in os.listdir(above):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                with open(f"{above}/{name}/{_NOTE}", encoding="utf-8") as file:
                    note = json.load(file)
                same_boot = note["boot"] == processes.boot_id()
                if same_boot and processes.start_time(note["agent"]) == note["agent_began"]:
                    continue
                if same_boot and processes.start_time(note["pid"]) == note["began"]:
                    processes.end_groups({note["pid"]: note["began"]}, [note["token"]], 1.0)
                shutil.rmtree(f"{above}/{name}", ignore_errors=True)


def _folder_above(environ: Mapping[str, str]) -> str:
    place = next(
        (
            place
            for place in (this_job(environ).folder, environ.get("TMPDIR"), _ANY_NODES)
            if place and len(place) <= _LONGEST_FOLDER and os.access(place, os.W_OK)
        ),
        _ANY_NODES,
    )
    folder = f"{place}/runyard-mps-{os.getuid()}"
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        status = os.lstat(folder)
    except OSError as error:
        raise NoMps(f"{folder}: {error.strerror}") from error
    # In a folder that all may write to, somebody else may have made it first, for us to trust.
    is_ours = status.st_uid == os.getuid() and (status.st_mode & 0o170077) == 0o040000
    if not is_ours:
        raise NoMps(f"{folder} is not a folder of yours alone: remove it")
    return folder


def _note(folder: str, pid: int, token: str) -> None:
    identity = processes.identity()
    content = {
        "pid": pid,
        "began": processes.start_time(pid),
        "token": token,
        "agent": identity["pid"],
        "agent_began": identity["pid_began"],
        "boot": identity["boot"],
    }
    with open(f"{folder}/{_NOTE}", "w", encoding="utf-8") as file:
        json.dump(content, file)


def _becomes_ready(folder: str, pid: int) -> bool:
    end = time.monotonic() + _READY_SECONDS
    while time.monotonic() < end:
        if os.path.exists(f"{folder}/pipe/control"):
            return True
        if processes.start_time(pid) is None:
            return False
        time.sleep(0.02)
    return False


def _said(folder: str) -> str:
    for name in ("said", "control.log"):
        with contextlib.suppress(OSError), open(f"{folder}/log/{name}", errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
            if lines:
                return lines[-1][:200]
    return "it says nothing"


def _quit(folder: str) -> None:
    import subprocess

    environ = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": f"{folder}/pipe"}
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            [_DAEMON], input=b"quit\n", env=environ, timeout=_QUIT_SECONDS, check=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip


def is_alive(mps: Mps) -> bool:
    """Whether the daemon still runs: a fault in one program can end it for all."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(mps.pid, 0)
        return processes.start_time(mps.pid) is not None
    return False
