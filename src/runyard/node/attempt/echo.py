"""What programs print, shown as it comes: each line marked with its trial, and in a file too."""

from __future__ import annotations

import contextlib
import os
import select

OUTPUT_FILE = "output.log"
# A progress bar without line ends is shown in pieces of this size.
_LONGEST_LINE = 1 << 16
# Whoever reads may stop for a while (a pager, Ctrl-S): so much is held for them, and no more.
_MOST_HELD = 1 << 20
_LAST_SECONDS = 2.0


class Show:
    """The pipe to whoever looks on. Never waits for them: what is too much is in the files."""

    def __init__(self, pipe: int) -> None:
        os.set_blocking(pipe, False)
        os.set_inheritable(pipe, False)
        self._pipe = pipe
        self._held = b""
        self._lines_left_out = 0

    def send(self, lines: bytes) -> None:
        if len(self._held) + len(lines) > _MOST_HELD:
            self._lines_left_out += lines.count(b"\n")
        else:
            self._held += lines
        self._push()

    def echo(self, name: str, folder: str) -> Echo:
        """For one attempt, of the trial with this name and folder."""
        return Echo(self, name, folder)

    def close(self) -> None:
        """Give the last lines some time."""
        while self._held and select.select([], [self._pipe], [], _LAST_SECONDS)[1]:
            self._push()
        os.close(self._pipe)

    def _push(self) -> None:
        try:
            while self._held:
                self._held = self._held[os.write(self._pipe, self._held) :]
        except BlockingIOError:
            return
        except OSError:  # Nobody is there any more.
            self._held = b""
        if self._lines_left_out:
            number, self._lines_left_out = self._lines_left_out, 0
            self.send(f"runyard\t... {number} lines are in {OUTPUT_FILE} alone\n".encode())


class Echo:
    """Passes on one attempt's output: whole lines to the pipe, every byte to the trial's file."""

    def __init__(self, show: Show, name: str, folder: str) -> None:
        self._show = show
        self._mark = f"{name}\t".encode()
        self._line = b""
        self._file = -1
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        with contextlib.suppress(OSError):  # The server has it as well.
            self._file = os.open(f"{folder}/{OUTPUT_FILE}", flags, 0o600)

    def take(self, data: bytes) -> None:
        if self._file >= 0:
            with contextlib.suppress(OSError):
                os.write(self._file, data)
        whole, end, self._line = (self._line + data).rpartition(b"\n")
        self._send(whole + end)
        if len(self._line) > _LONGEST_LINE:
            self._send_rest()

    def close(self) -> None:
        self._send_rest()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _send_rest(self) -> None:
        if self._line:
            self._send(self._line + b"\n")
            self._line = b""

    def _send(self, lines: bytes) -> None:
        if lines:
            marked = (self._mark + line + b"\n" for line in lines.split(b"\n")[:-1])
            self._show.send(b"".join(marked))
