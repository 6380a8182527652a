"""The program of `runyard run`, in front of the user's terminal: its signals, stops and end."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType

from runyard.errors import ProgramError
from runyard.node.attempt.terminal import Terminal
from runyard.node.system.loop import Loop
from runyard.node.system.processes import NotStarted, launch

# Passed on when they come to us alone; the terminal's own reach the program by themselves.
FORWARDED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGTSTP,
)
_MEANT_FOR_US_AFTERWARDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GRACE_SECONDS = 3.0


@contextlib.contextmanager
def deaf_threads() -> Iterator[None]:
    """Threads that are started in here take no signals.

    The kernel gives a signal to any thread that takes it; one that comes to another thread does
    not wake the main one from its wait, and would be passed on when it is too late.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*FORWARDED, signal.SIGCONT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Program:
    """One program in a process group of its own.

    Signal handlers are set before it starts and live as long as this object is in use, so a
    signal that comes in between is not lost: it is passed on as soon as there is somebody to take
    it.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._terminal = Terminal()
        self._pid: int | None = None
        self._exit_code: int | None = None
        self._early: list[int] = []
        self._asked_late = False
        self._forwarded: set[int] = set()
        self._ended_in_front = False
        # What our caller has us ignore (nohup, a script's `&`), the program is to ignore as well.
        self._heeded = [
            number for number in FORWARDED if signal.getsignal(number) is not signal.SIG_IGN
        ]
        for number in self._heeded:
            signal.signal(number, self._forward)
        signal.signal(signal.SIGCONT, self._go_on)

    def start(self, environ: Mapping[str, str], stdout: int, stderr: int, loop: Loop) -> None:
        foreground = self._terminal.is_ours()

        def enter_group() -> None:
            os.setpgid(0, 0)
            if foreground:
                self._terminal.give(os.getpid())

        loop.on_signal(signal.SIGCHLD, lambda _number: self._look())
        try:
            # Only these two calls happen between fork and exec, before any thread is started.
            self._pid = launch(
                self._command, environ, None, stdout, errors=stderr, on_terminal=enter_group
            )
        except (NotStarted, OSError) as error:
            if foreground:
                self._terminal.give(os.getpgrp())
            raise _not_started(self._command, error) from error
        if self._terminal.is_there:
            # Under `stty tostop` we, who are not in the foreground, could not write otherwise.
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        for number in self._early:
            self._send(number)

    @property
    def group(self) -> int:
        assert self._pid is not None
        return self._pid

    def wait(self, loop: Loop) -> int:
        """Wait for the end. The exit code, negative for the signal that ended it."""
        while self._exit_code is None:
            loop.turn()
        return self._exit_code

    def _look(self) -> None:
        """Some child has stopped or ended: see whether it is the program."""
        while self.runs and self._pid is not None:
            pid, status = os.waitpid(self._pid, os.WUNTRACED | os.WNOHANG)
            if not pid:
                return
            if os.WIFSTOPPED(status):
                self._stop_with_it(os.WSTOPSIG(status))
            else:
                self._exit_code = os.waitstatus_to_exitcode(status)
                self._ended_in_front = self._terminal.take_back(self._pid)

    @property
    def runs(self) -> bool:
        return self._pid is not None and self._exit_code is None

    def give_up_signals(self) -> None:
        """After the end: what asks to end is now meant for us, and raises KeyboardInterrupt.

        If it came already, between the end and now, it does so after some seconds: whoever ends
        us together with the program loses nothing where the server answers.
        """
        for number in _MEANT_FOR_US_AFTERWARDS:
            if number in self._heeded:
                signal.signal(number, signal.default_int_handler)
        if self._asked_late:
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.setitimer(signal.ITIMER_REAL, _GRACE_SECONDS)

    def forget_grace(self) -> None:
        if self._asked_late:
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
            signal.setitimer(signal.ITIMER_REAL, 0)

    def ask_to_end(self) -> None:
        """Somebody asked for this run to stop."""
        self._send(signal.SIGTERM)

    def tell_resized(self) -> None:
        """The kernel does not tell it: the terminal that we made is not its controlling one."""
        if self.runs:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.group, signal.SIGWINCH)

    def end_likewise(self, exit_code: int) -> int:
        """End ourselves as the program did, so that our caller sees what it would have seen."""
        self._terminal.close()
        if exit_code >= 0:
            return exit_code
        number = -exit_code
        import resource

        # The program may have left a core file; a second one of ours would bury it.
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        if number == signal.SIGINT and self._ended_in_front and number not in self._forwarded:
            # Ctrl-C reached the program's group only: a script that called us must hear of it too.
            os.kill(0, number)
        os.kill(os.getpid(), number)
        return 128 + number

    def _send(self, number: int) -> bool:
        """Send the program a signal; says whether it was still there."""
        if self.runs:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.group, number)
                return True
        return False

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        self._forwarded.add(number)
        if self._pid is None:
            self._early.append(number)
        elif not self._send(number) and number in _MEANT_FOR_US_AFTERWARDS:
            self._asked_late = True

    def _stop_with_it(self, number: int) -> None:
        """Ctrl-Z stopped the program: give the shell its terminal back and stop as well."""
        wants_terminal = number in (signal.SIGTTIN, signal.SIGTTOU)
        if wants_terminal and self._terminal.is_ours():
            self._resume()  # A shell's `fg` of a job that was running comes without SIGCONT.
            return
        in_front = self._terminal.take_back(self.group)
        by_job_control = number != signal.SIGSTOP and self._terminal.is_there
        if not in_front and not by_job_control:
            return  # Whoever stopped the program alone will continue it alone.
        if number == signal.SIGSTOP:
            os.kill(os.getpid(), number)
            return
        before = signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.signal(number, before)

    def _go_on(self, _number: int, _frame: FrameType | None) -> None:
        if self.runs:
            self._resume()

    def _resume(self) -> None:
        if self._terminal.is_ours():
            self._terminal.give(self.group)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.group, signal.SIGCONT)


def _not_started(command: Sequence[str], error: NotStarted | OSError) -> ProgramError:
    name, cause = command[0], error.__cause__ if isinstance(error, NotStarted) else error
    is_missing = isinstance(cause, FileNotFoundError)
    mend = None
    if is_missing and os.path.exists(name) and "/" in name:
        mend = f"the interpreter that the first line of {name} names may be missing"
    elif name.endswith(".py"):
        mend = f"runyard run -- python {shlex.join(command)}"
    elif is_missing and os.path.exists(name):
        mend = f"runyard run -- ./{shlex.join(command)}"
    elif is_missing:
        mend = "check its spelling, and that its environment is active"
    elif isinstance(cause, PermissionError):
        mend = f"chmod +x {name}, or name the program that runs it"
    return ProgramError(
        f"cannot start {name!r}",
        exit_code=127 if is_missing else 126,
        said=cause.strerror if isinstance(cause, OSError) else str(cause),
        mend=mend,
    )
