"""One task of an attempt that has many: starts its program, and ends it with the others.

Started by the scheduler on each node (`leader.py`). When the connection to there is gone, so is the
attempt: the program is ended, on whichever node it runs.
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

from runyard.node.attempt.client_finish import end_programs
from runyard.node.data.steward import local_folder
from runyard.node.devices.gpus import ask_driver
from runyard.node.link.place import home_folder
from runyard.node.ranks.launchers import (
    Meeting,
    NotPython,
    count_gpus,
    program_words,
    rank_variables,
)
from runyard.node.system.processes import (
    CLIENT_SECONDS,
    MARK,
    RANK_MARK,
    is_client,
    marked,
    send_to_listeners,
)
from runyard.save_protocol import GO_ON
from runyard.schedulers.inside import this_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from runyard.node.link.relay import Door

_REACH_SECONDS = 60.0
_GRACE_SECONDS = 4.0
_REST_SECONDS = 3.0
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


def main(words: list[str] | None = None) -> int:
    settings_json, count, *rest = sys.argv[1:] if words is None else words
    settings: dict[str, Any] = json.loads(settings_json)
    around, command = rest[: int(count)], rest[int(count) :]
    meeting = Meeting(
        int(settings["nodes"]), settings["address"], int(settings["port"]), settings["name"]
    )
    hub = _reach(settings["address"], int(settings["hub"]))
    if hub is None:
        return 1
    job = this_job()
    token, number = os.environ[MARK], job.rank
    own_mark = f"{token}.{number}"
    environ = {
        **os.environ,
        **rank_variables(settings["form"], os.environ, meeting, settings.get("interface")),
        RANK_MARK: own_mark,
    }
    _send(hub, {"token": token, "rank": number})
    driver = ask_driver if settings.get("has_gpus") else list
    processes = count_gpus(os.environ, driver) or int(settings.get("processes") or 1)
    try:
        own = program_words(
            settings["form"], command, meeting, node=job.node_number, processes=processes
        )
    except NotPython as error:
        print(f"runyard: {error}", file=sys.stderr, flush=True)
        _send(hub, {"code": 2})
        return 2
    own = [*around, *own]
    folder = local_folder(os.environ)
    if folder is not None:
        if job.folder and job.folder != folder:  # The agent has written that of its own node.
            own = [word.replace(job.folder, folder) for word in own]
        environ |= job.with_folder(folder)
    is_far = (job.node or "") != settings["batch"]
    door = _own_door(environ) if is_far else None  # Open until we end.
    code = _run(hub, own, environ, is_far=is_far)
    _send(hub, {"code": code})
    _end_rest(own_mark)
    del door
    # With 75 the others are to save as well: the scheduler must not take it for a failure.
    return 0 if code == GO_ON else code if code >= 0 else 128 - code


def _own_door(environ: dict[str, str]) -> Door | None:
    """The agent's door is on its own node: here is another one, in its place in `environ`."""
    if "://127.0.0.1:" not in environ.get("WANDB_BASE_URL", ""):
        return None
    from runyard.node.link.relay import Door

    door = Door(home_folder())
    door.open()
    environ["WANDB_BASE_URL"] = door.url
    return door


def _run(hub: socket.socket, words: list[str], environ: dict[str, str], *, is_far: bool) -> int:
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
            words, env=environ, start_new_session=True, preexec_fn=_dying_with_parent()
        )
    except OSError as error:
        print(f"runyard: cannot start {words[0]!r}: {error.strerror}", file=sys.stderr, flush=True)
        return 127
    notified: set[int] = set()
    watched: list[Any] = [heard, hub]
    kill_at: float | None = None
    while program.poll() is None:
        ready, _, _ = select.select(watched, [], [], 0.5)
        orders = _words_from(hub) if hub in ready else []
        if orders is None:
            watched.remove(hub)
            orders = ["TERM"]
        if heard in ready and os.read(heard, 64).translate(None, bytes([signal.SIGCHLD])):
            orders = [*orders, "TERM"]
        if "USR2" in orders and is_far:
            mark = environ[RANK_MARK]
            send_to_listeners(program.pid, mark, signal.SIGUSR2, notified, RANK_MARK)
        if "TERM" in orders and kill_at is None:
            end_programs([program.pid], [environ[RANK_MARK]], signal.SIGTERM, RANK_MARK)
            kill_at = time.monotonic() + _GRACE_SECONDS
        if "KILL" in orders or (kill_at is not None and time.monotonic() > kill_at):
            end_programs([program.pid], [environ[RANK_MARK]], signal.SIGKILL, RANK_MARK)
    return program.returncode


def _dying_with_parent() -> Callable[[], None]:
    """What a program does before it begins: if this process is killed, so is the program."""
    import ctypes

    prctl = getattr(ctypes.CDLL(None), "prctl", None)

    def prepare() -> None:
        signal.signal(signal.SIGUSR2, signal.SIG_DFL)
        if prctl is not None:
            prctl(_DEATH_SIGNAL, signal.SIGKILL)

    return prepare


def _words_from(hub: socket.socket) -> list[str] | None:
    """None when nobody is there any more."""
    try:
        part = hub.recv(4096)
    except OSError:
        return None
    return part.decode().split() if part else None


def _send(hub: socket.socket, message: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        hub.sendall(json.dumps(message).encode() + b"\n")


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


def _end_rest(own_mark: str) -> None:
    """End what the program left running on this node, such as torchrun's workers, which have groups
    of their own. Its wandb client still sends what was logged: it is waited for."""
    began = time.monotonic()
    while left := marked([own_mark], RANK_MARK):
        waited = time.monotonic() - began
        if waited > CLIENT_SECONDS + _REST_SECONDS:
            return  # Even KILL does not end what hangs in the kernel.
        number = signal.SIGTERM if waited < _REST_SECONDS else signal.SIGKILL
        for pid in left:
            if waited > CLIENT_SECONDS or not is_client(pid):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
