"""The server's process: started so that it outlives its shell, and told from others."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from runyard.errors import ServerError, from_json
from runyard.home import Discovery, Home
from runyard.owners import HEARTBEAT
from runyard.port_holder import HOLD_SECONDS

_SERVER_SETTINGS = ("RUNYARD_LEASE_SECONDS", "RUNYARD_ONLY_WANDB", HEARTBEAT, HOLD_SECONDS)


def spawn(
    home: Home, listen: str | None, port: int | None, options: Sequence[str], seconds: float
) -> dict[str, str | None]:
    """Start the process; what it reports when it is ready, within so many seconds."""
    command = [sys.executable, "-m", "runyard.server", "--home", str(home.path), *options]
    if listen is not None:
        command += ["--listen", listen]
    if port is not None:
        command += ["--port", str(port)]
    reader, writer = os.pipe()
    try:
        with home.crash_log.open("ab") as crash_log, _hearing_all_signals():
            process = start([*command, "--ready-fd", str(writer)], home.path, crash_log, writer)
    finally:
        os.close(writer)
    with os.fdopen(reader, "rb") as ready:
        report = _read_report(ready.fileno(), seconds)
    if report is None:
        code = process.poll()
        died = f"ended with code {code}" if code is not None else "is still not ready"
        raise ServerError(
            f"the server of {home.path} {died}",
            said=_last_line(home.crash_log),
            mend=f"look at {home.log} and {home.crash_log}",
        )
    process.returncode = 0  # It lives on; Popen must not warn about that.
    if "error" in report:
        raise from_json(report)
    return report


def start(
    command: Sequence[str], folder: Path, crash_log: IO[bytes], ready: int
) -> subprocess.Popen[bytes]:
    """A session of its own: it outlives the terminal, and Ctrl-C does not reach it."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=crash_log,
        stderr=crash_log,
        pass_fds=[ready],
        start_new_session=True,
        cwd=folder,
        env=server_environment(),
    )


@contextlib.contextmanager
def _hearing_all_signals() -> Iterator[None]:
    """What is started in here inherits no deafness from the thread that starts it."""
    before = signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def server_environment() -> dict[str, str]:
    """What of our environment the server gets."""
    from runyard.schedulers.inside import VARIABLE_PREFIXES  # Where a server is started.

    # The server runs for weeks: nothing of one shell's job or project may stick to it.
    dropped = ("WANDB_", *VARIABLE_PREFIXES, "RUNYARD_", "COMP_", "_ARGCOMPLETE")
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(dropped) or name in _SERVER_SETTINGS
    }


def _read_report(handle: int, timeout: float) -> dict[str, str | None] | None:
    """What the new server says of its start: one line of JSON, or nothing if it died."""
    end = time.monotonic() + timeout
    text = b""
    while not text.endswith(b"\n"):
        readable, _, _ = select.select([handle], [], [], max(0.0, end - time.monotonic()))
        piece = os.read(handle, 65536) if readable else b""
        if not piece:
            return None
        text += piece
    return json.loads(text)


def is_ours(discovery: Discovery, home: Home) -> bool:
    """Process ids are given out again: make sure before killing one."""
    if discovery.hostname != socket.gethostname():
        return False
    return f"-m runyard.server --home {home.path} " in f"{_command_line(discovery.pid)} "


def _command_line(pid: int) -> str:
    try:
        # A small container may have no `ps`; Linux needs none.
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
        return words.replace("\0", " ").strip()
    except OSError:
        if Path("/proc/self").exists():
            return ""
    shown = subprocess.run(
        ["ps", "-ww", "-o", "command=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    )
    return shown.stdout.strip()


def _last_line(path: Path) -> str | None:
    try:
        lines = path.read_text(errors="replace").strip().splitlines()
    except OSError:
        return None
    return lines[-1] if lines else None
