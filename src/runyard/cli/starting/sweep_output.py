"""What the programs of a sweep print, passed on from the agent as it comes."""

from __future__ import annotations

import contextlib
import os
import threading

_AT_ONCE = 1 << 16
_LAST_SECONDS = 5.0


class Output:
    """A pipe for the agent, and a thread that copies it: only the thread waits for a slow reader,
    a pager or a terminal that is stopped."""

    def __init__(self, into: int) -> None:
        self._into = into
        self._read, self.pipe = os.pipe()
        self._thread = threading.Thread(target=self._copy, daemon=True)

    def begin(self) -> None:
        """The agent has its end."""
        os.close(self.pipe)
        self._thread.start()

    def finish(self) -> None:
        self._thread.join(_LAST_SECONDS)

    def _copy(self) -> None:
        is_read = True
        while data := os.read(self._read, _AT_ONCE):
            while is_read and data:
                try:
                    data = data[os.write(self._into, data) :]
                except OSError:  # `| head` has enough: the agent goes on all the same.
                    is_read = False
        with contextlib.suppress(OSError):
            os.close(self._read)
