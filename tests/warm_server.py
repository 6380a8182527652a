"""A Python that has loaded runyard's commands, and forks a process of its own for each that is run.

Started by tests/warm_commands.py, which says how such a process differs from a fresh one. Every
connection brings an order and the command's streams; it is answered with the process's number, then
with how it ended.
"""

import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import runyard.cli

# What commands import only when they need it.
_LATE = (
    "rich.live",
    "rich.table",
    "runyard.node.agent.__main__",
    "runyard.node.attempt.run_attempt",
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
    head, files, _, _ = socket.recv_fds(connection, 8, 3)
    size = int.from_bytes(head, "big")
    data = b""
    while len(data) < size:
        data += connection.recv(size - len(data))
    child = os.fork()
    if child == 0:
        connection.close()
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        order: dict[str, Any] = json.loads(data)
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


load()
# A low number: `select` knows none above 1,023, and a test may have had thousands open.
listener = socket.socket(fileno=os.dup(int(sys.argv[1])))
os.close(int(sys.argv[1]))
order = take_orders(listener)
os.environ.clear()
os.environ.update(order["environment"])
os.umask(order["umask"])
os.chdir(order["folder"])
sys.argv[1:] = order["words"]
sys.path[0] = str(Path.cwd())
runpy.run_module("runyard", run_name="__main__", alter_sys=True)
