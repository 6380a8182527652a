"""A Python that has loaded runyard, and forks a process of its own for each command and server.

Started by tests/warm_commands.py, which says how such a process differs from a fresh one. Every
connection brings an order and the command's streams; it is answered with the process's number, then
with how it ended.
"""

import ctypes
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import runyard.cli
from runyard.client import server_process

# What commands import only when they need it.
_LATE = (
    "rich.live",
    "rich.table",
    "runyard.node.agent.__main__",
    "runyard.node.attempt.run_attempt",
    "runyard.server.serve",
    "uvloop",
)


def take_orders(listener: socket.socket) -> dict[str, Any]:
    """Returns the order of a command, in the process that is to be it alone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Nobody waits for those who mind commands.
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:  # Closed: the tests are over, or killed.
            os._exit(0)
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            return mind(connection)
        connection.close()


def mind(connection: socket.socket) -> dict[str, Any]:
    """Forks the command and tells of its end; returns in the command alone."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, files, _, _ = socket.recv_fds(connection, 8, 4)
    size = int.from_bytes(head, "big")
    data = b""
    while len(data) < size:
        data += connection.recv(size - len(data))
    child = os.fork()
    if child == 0:
        connection.close()
        order: dict[str, Any] = json.loads(data)
        # Above all numbers that are wanted.
        high = [fcntl.fcntl(file, fcntl.F_DUPFD, 500) for file in files]
        for file in files:
            os.close(file)
        for number, file in zip(order["files"], high, strict=True):
            os.dup2(file, number)
            os.close(file)
        return order
    for file in (0, 1, 2, *files):
        os.close(file)
    connection.sendall(child.to_bytes(4, "big"))
    _, status = os.waitpid(child, 0)
    try:
        connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
    finally:
        os._exit(0)


def load() -> None:
    for module in pkgutil.walk_packages(runyard.cli.__path__, "runyard.cli."):
        importlib.import_module(module.name)
    for name in _LATE:
        importlib.import_module(name)
    gc.freeze()


def show_as(words: list[str]) -> None:
    """Writes a command line over ours, for those who look for processes by it."""
    text = b"\0".join(os.fsencode(word) for word in words)
    numbers = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(numbers[45]), int(numbers[46])
    assert len(text) < end - begin, "a longer command line than there is room for"
    ctypes.memset(begin, 0, end - begin)
    ctypes.memmove(begin, text, len(text))


load()
sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.warm_orders import Orders  # noqa: E402

del sys.path[0], sys.modules["tests"]
orders = Orders(sys.argv[2], os.environ)
# A low number: `select` knows none above 1,023, and a test may have had thousands open.
listener = socket.socket(fileno=os.dup(int(sys.argv[1])))
os.close(int(sys.argv[1]))
order = take_orders(listener)
os.environ.clear()
os.environ.update(order["environment"])
os.umask(order["umask"])
os.chdir(order["folder"])
if order["module"] == "runyard.server":
    os.setsid()
    show_as([sys.executable, "-m", "runyard.server", *order["words"]])
else:
    start_fresh = server_process.start

    def start(
        command: Sequence[str], folder: Path, crash_log: IO[bytes], ready: int
    ) -> subprocess.Popen[bytes]:
        warm = orders.start_server(command, folder, crash_log, ready)
        return warm or start_fresh(command, folder, crash_log, ready)

    server_process.start = start
sys.argv[1:] = order["words"]
sys.path[0] = str(Path.cwd())
runpy.run_module(order["module"], run_name="__main__", alter_sys=True)
