"""The address of a host, without waiting for a name server.

One that does not answer holds `getaddrinfo` for ten seconds and more. In the loop of an agent that
would be ten seconds in which no lease is renewed and no signal heard. So a name is looked up in a
process of its own; a number is its own answer.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket

from runyard.node.system.loop import READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from runyard.node.system.loop import Loop

    # Family and address, as `socket.socket` and `connect` want them.
    Address = tuple[socket.AddressFamily, tuple[Any, ...]]

_LONGEST_SECONDS = 20
_LONGEST_ANSWER = 256


class Lookup:
    """A name that is looked up, until `on_end` was called or `cancel` is."""

    def __init__(
        self, loop: Loop, host: str, port: int, on_end: Callable[[Address | None], None]
    ) -> None:
        from runyard.node.system.processes import fork_twin  # Few servers are known by a name.

        self._loop = loop
        self._port = port
        self._on_end = on_end
        self._answer, written = os.pipe()
        self._pid = fork_twin(lambda: _write_number(host, port, written), (written,))
        os.close(written)
        loop.watch(self._answer, READ, self._on_answer)

    def cancel(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        self._close()

    def _on_answer(self, _events: int) -> None:
        number = os.read(self._answer, _LONGEST_ANSWER).decode()
        self._close()
        self._on_end(_of_number(number, self._port) if number else None)

    def _close(self) -> None:
        self._loop.forget(self._answer)
        os.close(self._answer)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


def find_address(
    loop: Loop, host: str, port: int, on_end: Callable[[Address | None], None]
) -> Lookup | None:
    """Call with the host's address, or with None where it has none. A number is answered at once;
    for a name, what is returned can be cancelled."""
    address = _of_number(host, port)
    if address is None:
        return Lookup(loop, host, port, on_end)
    on_end(address)
    return None


def _of_number(host: str, port: int) -> Address | None:
    try:
        info = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)[
            0
        ]
    except (OSError, UnicodeError):
        return None
    return info[0], info[4]


def _write_number(host: str, port: int, written: int) -> None:
    """In a process of its own, which ends here in any case."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_LONGEST_SECONDS)
    info = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    os.write(written, str(info[4][0]).encode())
