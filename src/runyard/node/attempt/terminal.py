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

    @property
    def is_there(self) -> bool:
        return self._handle is not None

    def is_ours(self) -> bool:
        """Whether we are the foreground job."""
        return self._foreground() == os.getpgrp()

    def give(self, group: int) -> None:
        """Make a process group the foreground job."""
        if self._handle is None:
            return
        # A process of the background that does this would be stopped by SIGTTOU.
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        with contextlib.suppress(OSError):
            os.tcsetpgrp(self._handle, group)
        signal.signal(signal.SIGTTOU, before)

    def take_back(self, group: int) -> bool:
        """Take it back from a group that has it. Says whether that was so.

        The shell may have given it to somebody else long ago (Ctrl-Z, `bg`): it stays there.
        """
        foreground = self._foreground()
        if foreground is None or (foreground != group and _exists(foreground)):
            return False
        self.give(os.getpgrp())
        return True

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _foreground(self) -> int | None:
        if self._handle is None:
            return None
        try:
            return os.tcgetpgrp(self._handle)
        except OSError:
            return None


def _exists(group: int) -> bool:
    # Some systems no longer name a group whose processes are all gone.
    if group <= 0:
        return False
    try:
        os.killpg(group, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True
