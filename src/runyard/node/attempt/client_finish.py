"""The wandb client's own 'finish', said for a program that is about to be ended.

The client holds the last row until the next call, and what was logged goes out in batches; both are
in the client's service process (wandb-core, or `wandb service` in older releases), which ends with
its program. So the program is stopped, the service is sent the message that the client sends at the
end of a program ('teardown'), and only when the service has sent everything is the program ended.

The message is the same in every release from 0.15 on: a header (`W`, length) and a ServerRequest
whose field 7 holds the exit code. Where the service listens, the kernel tells.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import time

from runyard.node.attempt.after_save import LONGEST_WAIT, send, stop_after_row
from runyard.node.system import processes
from runyard.node.system.process_trees import grown
from runyard.node.system.processes import has_handler
from runyard.node.system.run_delay import RunDelay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# Enough for what is left where the server answers; a client whose server is away is not waited for.
FINISH_SECONDS = 8.0
# What the client tells the server: killed from outside, which no program says of itself. How the
# attempt ended, whoever is beside it tells.
_EXIT_CODE = 128 + int(signal.SIGKILL)
_LOOK_EVERY = 0.02
# What the program wrote before it was stopped is read by then: nothing new in so many looks.
_QUIET_LOOKS, _MOST_LOOKS, _QUIET_EVERY = 3, 60, 0.05
_LISTENS_TCP, _LISTENS_UNIX = "0A", 0x10000
_ESTABLISHED_TCP = "01"


def end_programs(
    groups: Sequence[int], tokens: Sequence[str], number: int, mark: str = processes.MARK
) -> None:
    """Send programs a signal, after their clients have sent everything. Waits, but not for ever."""
    stopped, owners = finish_clients(processes.members(groups, tokens, mark), number)
    for group in groups:
        processes.send(group, number)
    send(owners, number)  # Torchrun's workers have groups of their own.
    send(stopped, signal.SIGCONT)


def finish_clients(members: Iterable[int], number: int) -> tuple[list[int], list[int]]:
    """Stop these processes and have their clients finish: who is stopped, and whose client it was.

    `number` is the signal that they get next. A program that has a handler for it leaves in its own
    way, and logs and saves on the way out: its client is left to it.
    """
    members = grown(members)  # Older services hide their environment, and with it the mark.
    clients = [pid for pid in members if processes.is_client(pid)]
    owners = {pid: parent(pid) for pid in clients}
    owners = {pid: owner for pid, owner in owners.items() if not has_handler(owner, number)}
    if not owners:
        return [], []
    spared = grown(clients)  # They have helpers, which they wait for.
    stopped = [pid for pid in members if pid not in spared and not processes.is_launcher(pid)]
    _stop(stopped, owners)
    for pid in owners:
        _wait_until_quiet(pid)
    finishing = [pid for pid in owners if tell_teardown(pid, _EXIT_CODE)]
    end = time.monotonic() + FINISH_SECONDS
    while any(processes.start_time(pid) for pid in finishing) and time.monotonic() < end:
        time.sleep(_LOOK_EVERY)
    return stopped, [owners[pid] for pid in finishing if owners[pid] in stopped]


def _stop(members: Iterable[int], clients: Iterable[int]) -> None:
    """Stop the processes of programs, each program when it has logged what it saved."""
    programs: dict[str | None, list[int]] = {}
    for pid in members:
        programs.setdefault(_checkpoint_folder(pid), []).append(pid)
    end = time.time() + LONGEST_WAIT
    for folder, processes_of_program in programs.items():
        if folder:
            stop_after_row(folder, processes_of_program, clients, end)
        else:
            send(processes_of_program, signal.SIGSTOP)


def _checkpoint_folder(pid: int) -> str | None:
    name = b"RUNYARD_CHECKPOINT_DIR="
    with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
        for word in file.read().split(b"\0"):
            if word.startswith(name):
                return os.fsdecode(word.removeprefix(name))
    return None


def _wait_until_quiet(service: int) -> None:
    """Until it has read what its program sent: our message comes on another connection."""
    before, quiet = _bytes_read(service), 0
    for _ in range(_MOST_LOOKS):
        delay = RunDelay([service])
        time.sleep(_QUIET_EVERY)
        now = _bytes_read(service)
        if now != before:
            before, quiet = now, 0
        elif delay.seconds() < _QUIET_EVERY / 2:  # Else it had no core to read with.
            quiet += 1
        if quiet == _QUIET_LOOKS:
            return


def _bytes_read(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/io", "rb") as file:
        return int(file.readline().split()[1])
    return 0


def tell_teardown(service: int, exit_code: int) -> bool:
    """Send a service the message; says whether it took it."""
    body = b"\x3a\x03\x08" + bytes([exit_code & 0x7F | 0x80, exit_code >> 7])
    for connection in _connections(service):
        with connection, contextlib.suppress(OSError):
            connection.sendall(struct.pack("<BI", ord("W"), len(body)) + body)
            return True
    return False


def _connections(service: int) -> Iterator[socket.socket]:
    handles = set(_sockets(service))
    for path in _unix_paths(service, handles):
        # A container may have a /tmp of its own.
        for seen in (path, f"/proc/{service}/root{path}"):
            with contextlib.suppress(OSError):
                yield _connect_unix(seen)
    if _network(service) == _network("self"):
        for port in _tcp_ports(service, handles):
            for host in ("127.0.0.1", "::1"):
                with contextlib.suppress(OSError):
                    yield socket.create_connection((host, port), timeout=1.0)


def listens_alone(service: int) -> bool:
    """Whether a service listens, and nobody is connected to it."""
    handles = set(_sockets(service))
    paths = set(_unix_paths(service, handles))
    ports = set(_tcp_ports(service, handles))
    if not paths and not ports:
        return False
    is_connected = any(
        fields[6] in handles
        and not int(fields[3], 16) & _LISTENS_UNIX
        and " ".join(fields[7:]) in paths
        for fields in _table(service, "unix")
        if len(fields) > 7
    )
    return not is_connected and not any(
        fields[3] == _ESTABLISHED_TCP
        and fields[9] in handles
        and int(fields[1].rpartition(":")[2], 16) in ports
        for name in ("tcp", "tcp6")
        for fields in _table(service, name)
    )


def _connect_unix(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(1.0)
    folder = os.open(os.path.dirname(path), os.O_PATH)
    try:
        # An address has 107 characters at most; the folder may be deep.
        connection.connect(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
    except OSError:
        connection.close()
        raise
    finally:
        os.close(folder)
    return connection


def _sockets(pid: int) -> Iterator[str]:
    """The kernel's numbers of a process' sockets."""
    with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as handles:
        for handle in handles:
            with contextlib.suppress(OSError):
                kind, _, number = os.readlink(handle.path).partition(":")
                if kind == "socket":
                    yield number.strip("[]")


def _unix_paths(pid: int, sockets: set[str]) -> Iterator[str]:
    for fields in _table(pid, "unix"):
        if len(fields) > 7 and fields[6] in sockets and int(fields[3], 16) & _LISTENS_UNIX:
            path = " ".join(fields[7:])
            if path.startswith("/"):
                yield path


def _tcp_ports(pid: int, sockets: set[str]) -> Iterator[int]:
    for name in ("tcp", "tcp6"):
        for fields in _table(pid, name):
            if fields[3] == _LISTENS_TCP and fields[9] in sockets:
                yield int(fields[1].rpartition(":")[2], 16)


def _table(pid: int, name: str) -> Iterator[list[str]]:
    path = f"/proc/{pid}/net/{name}"
    # Everybody's sockets, whose names may be any bytes.
    with contextlib.suppress(OSError), open(path, errors="surrogateescape") as file:
        next(file, None)
        for line in file:
            yield line.split()


def _network(pid: int | str) -> str | None:
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/ns/net")
    return None


def parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except OSError:
        return 0
