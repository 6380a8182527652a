"""The user's program as a process: started, signalled, stopped and continued, waited for."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import FrameType

from runyard.errors import ProgramError
from runyard.node.terminal import Terminal

# Passed on when they come to us alone; the terminal's own reach the program by themselves.
FORWARDED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


class Program:
    """One program in a process group of its own.

    Signal handlers are set before it starts and live as long as this object is in use, so a
    signal that comes in between is not lost: it is passed on as soon as there is somebody to take
    it.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._terminal = Terminal()
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._had_terminal = False
        for number in FORWARDED:
            signal.signal(number, self._forward)
        signal.signal(signal.SIGCONT, self._go_on)

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    def start(self, environment: Mapping[str, str], stdout: int, stderr: int) -> None:
        foreground = self._had_terminal = self._terminal.is_ours()

        def enter_group() -> None:
            os.setpgid(0, 0)
            if foreground:
                self._terminal.give(os.getpid())

        try:
            # Only these two calls happen between fork and exec, before any thread is started.
            self._process = subprocess.Popen(
                self._command,
                env=dict(environment),
                stdout=stdout,
                stderr=stderr,
                preexec_fn=enter_group,
            )
        except OSError as error:
            self._terminal.take_back()
            raise _not_started(self._command, error) from error
        for number in self._early:
            self._send(number)

    def wait(self) -> int:
        """Wait for the end. The exit code, negative for the signal that ended it."""
        assert self._process is not None
        while True:
            _, status = os.waitpid(self._process.pid, os.WUNTRACED)
            if os.WIFSTOPPED(status):
                self._stop_with_it(os.WSTOPSIG(status))
                continue
            self._process.returncode = os.waitstatus_to_exitcode(status)
            if self._had_terminal:
                self._terminal.take_back()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            return self._process.returncode

    def close(self) -> None:
        self._terminal.close()

    def end_likewise(self, exit_code: int) -> int:
        """End ourselves as the program did, so that our caller sees what it would have seen."""
        if exit_code >= 0:
            return exit_code
        number = -exit_code
        import resource

        # The program may have left a core file; a second one of ours would bury it.
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        if number == signal.SIGINT and self._had_terminal:
            # Ctrl-C reached the program's group only: a script that called us must hear of it too.
            os.kill(0, number)
        os.kill(os.getpid(), number)
        return 128 + number

    def _send(self, number: int) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        if self._process is None:
            self._early.append(number)
        else:
            self._send(number)

    def _stop_with_it(self, number: int) -> None:
        """Ctrl-Z stopped the program: give the shell its terminal back and stop as well."""
        if self._had_terminal:
            self._terminal.take_back()
        before = signal.signal(number, signal.SIG_DFL) if number != signal.SIGSTOP else None
        os.kill(os.getpid(), number)
        if before is not None:
            signal.signal(number, before)

    def _go_on(self, _number: int, _frame: FrameType | None) -> None:
        if self._process is None or self._process.returncode is not None:
            return
        if self._terminal.is_ours():
            self._had_terminal = True
            self._terminal.give(self._process.pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGCONT)


def _not_started(command: Sequence[str], error: OSError) -> ProgramError:
    name = command[0]
    found = isinstance(error, FileNotFoundError)
    mend = None
    if found and os.path.exists(name) and "/" in name:  # noqa: PTH110
        mend = f"the interpreter that the first line of {name} names may be missing"
    elif name.endswith(".py"):
        mend = f"runyard run -- python {' '.join(command)}"
    elif found and os.path.exists(name):  # noqa: PTH110
        mend = f"runyard run -- ./{' '.join(command)}"
    elif found:
        mend = "check its spelling, and that its environment is active"
    elif isinstance(error, PermissionError):
        mend = f"chmod +x {name}, or name the program that runs it"
    return ProgramError(
        f"cannot start {name}", exit_code=127 if found else 126, said=error.strerror, mend=mend
    )
