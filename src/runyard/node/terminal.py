"""The controlling terminal, handed to the program and taken back, as a shell does it.

The program stands in a process group of its own. While that group is in the foreground, Ctrl-C
reaches the program from the kernel, once; a signal sent to runyard alone is passed on, once. Were
both in one group, the two ways could not be told apart.
"""

from __future__ import annotations

import contextlib
import os
import signal


class Terminal:
    """Our controlling terminal, or none."""

    def __init__(self) -> None:
        try:
            self._handle: int | None = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            self._handle = None

    def is_ours(self) -> bool:
        """Whether we are the foreground job."""
        if self._handle is None:
            return False
        try:
            return os.tcgetpgrp(self._handle) == os.getpgrp()
        except OSError:
            return False

    def give(self, group: int) -> None:
        """Make a process group the foreground job."""
        if self._handle is None:
            return
        # A process of the background that does this would be stopped by SIGTTOU.
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        with contextlib.suppress(OSError):
            os.tcsetpgrp(self._handle, group)
        signal.signal(signal.SIGTTOU, before)

    def take_back(self) -> None:
        self.give(os.getpgrp())

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
