"""One task of an attempt that has many: starts its program, and ends it with the others.

Started by srun on each node (`ranks.py`). When the connection to there is gone, so is the attempt:
the program is ended, on whichever node it runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time

from runyard.node.processes import CLIENT_SECONDS, MARK, is_client, marked, send_to_listeners
from runyard.node.rank_words import (
    ONE_A_NODE,
    Meeting,
    NotPython,
    count_gpus,
    program_words,
    rank_variables,
)
from runyard.node.steward import local_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_GO_ON = 75
_REACH_SECONDS = 60.0
_GRACE_SECONDS = 5.0


def main(words: list[str] | None = None) -> int:
    given, count, *rest = sys.argv[1:] if words is None else words
    settings: dict[str, Any] = json.loads(given)
    around, command = rest[: int(count)], rest[int(count) :]
    meeting = Meeting(
        int(settings["nodes"]), settings["address"], int(settings["port"]), settings["name"]
    )
    hub = _reach(settings["address"], int(settings["hub"]))
    if hub is None:
        return 1
    environ = {
        **os.environ,
        **rank_variables(settings["form"], os.environ, meeting, settings.get("interface")),
    }
    token = os.environ[MARK]
    _send(hub, {"token": token, "rank": int(os.environ.get("SLURM_PROCID", "0"))})
    processes = count_gpus(os.environ) or int(settings.get("processes") or 1)
    node = int(os.environ.get("SLURM_NODEID", "0"))
    try:
        own = program_words(settings["form"], command, meeting, node=node, processes=processes)
    except NotPython as error:
        print(f"runyard: {error}", file=sys.stderr, flush=True)
        _send(hub, {"code": 2})
        return 2
    own = [*around, *own]
    folder = local_folder(os.environ)
    if folder is not None:
        there = os.environ.get("SLURM_TMPDIR", "")
        if there and there != folder:  # The agent has written that of its own node.
            own = [word.replace(there, folder) for word in own]
        environ["SLURM_TMPDIR"] = folder
    is_far = os.environ.get("SLURMD_NODENAME", "") != settings["batch"]
    code = _run(hub, own, environ, token, is_far=is_far)
    _send(hub, {"code": code})
    if os.environ.get("SLURM_PROCID") == "0" or settings["form"] in ONE_A_NODE:
        _wait_for_client(token)
    # With 75 the others are to save as well: srun must not take it for a failure.
    return 0 if code == _GO_ON else code if code >= 0 else 128 - code


def _run(hub: socket.socket, words: list[str], environ: dict[str, str], token: str, *,
         is_far: bool) -> int:  # fmt: skip
    """Run the program to its end; negative for a signal."""
    import subprocess

    heard, written = os.pipe()
    os.set_blocking(written, False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # Told by the hub, to those that listen.
    signal.set_wakeup_fd(written, warn_on_full_buffer=False)
    try:
        program = subprocess.Popen(
            words, env=environ, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGUSR2, signal.SIG_DFL),
        )  # fmt: skip
    except OSError as error:
        print(f"runyard: cannot start {words[0]!r}: {error.strerror}", file=sys.stderr, flush=True)
        return 127
    told: set[int] = set()
    watched: list[Any] = [heard, hub]
    kill_at: float | None = None
    while program.poll() is None:
        found, _, _ = select.select(watched, [], [], 0.5)
        said = _words_from(hub) if hub in found else []
        if said is None:
            watched.remove(hub)
            said = ["TERM"]
        if heard in found and os.read(heard, 64).translate(None, bytes([signal.SIGCHLD])):
            said = [*said, "TERM"]
        if "USR2" in said and is_far:
            send_to_listeners(program.pid, token, signal.SIGUSR2, told)
        if "TERM" in said and kill_at is None:
            kill_at = time.monotonic() + _GRACE_SECONDS
            _signal(program.pid, signal.SIGTERM)
        if "KILL" in said or (kill_at is not None and time.monotonic() > kill_at):
            _signal(program.pid, signal.SIGKILL)
    if program.returncode:
        _signal(program.pid, signal.SIGTERM)  # What it left of its group.
    return program.returncode


def _words_from(hub: socket.socket) -> list[str] | None:
    """None when nobody is there any more."""
    try:
        part = hub.recv(4096)
    except OSError:
        return None
    return part.decode().split() if part else None


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _send(hub: socket.socket, told: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        hub.sendall(json.dumps(told).encode() + b"\n")


def _reach(host: str, port: int) -> socket.socket | None:
    end, why = time.monotonic() + _REACH_SECONDS, ""
    while time.monotonic() < end:
        try:
            return socket.create_connection((host, port), timeout=10)
        except OSError as error:
            why = str(error)
            time.sleep(0.2)
    print(
        f"runyard: {socket.gethostname()} does not reach {host}:{port}, where the job's first node "
        f"is: {why}; the profile's network.interface, address_suffix and ports say how nodes meet",
        file=sys.stderr, flush=True,
    )  # fmt: skip
    return None


def _wait_for_client(token: str) -> None:
    """The wandb client of a program that is gone still sends what was logged; the step's end would
    be its own."""
    mine = f"SLURM_PROCID={os.environ.get('SLURM_PROCID', '0')}".encode()
    end = time.monotonic() + CLIENT_SECONDS
    while time.monotonic() < end and any(_has(pid, mine) for pid in marked([token])):
        time.sleep(0.1)


def _has(pid: int, variable: bytes) -> bool:
    if not is_client(pid):
        return False
    with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
        return variable in file.read().split(b"\0")
    return False


if __name__ == "__main__":
    sys.exit(main())
