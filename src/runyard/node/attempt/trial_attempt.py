"""A trial's execution by the agent: prepared, begun, watched, ended, told."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time

from runyard.node.attempt.checkpoints import asked_to_go_on, has_saved
from runyard.node.attempt.delivery import LINGER_SECONDS, Execution
from runyard.node.attempt.exit_causes import TAIL_BYTES, cause_of, final_cause, kills_for_memory
from runyard.node.attempt.records import Record
from runyard.node.system import processes
from runyard.node.system.loop import READ
from runyard.node.system.processes import NotStarted, launch
from runyard.save_protocol import attempt_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from runyard.node.attempt.echo import Echo
    from runyard.node.attempt.keeper import Keeper
    from runyard.node.attempt.workspace import Workspace
    from runyard.node.link.channel import Channel
    from runyard.node.system.loop import Loop, Timer

_READ_AT_ONCE = 1 << 16
# From asking a program to end to ending it.
GRACE_SECONDS = 10.0
# Who is to save is told again: it may not have been listening yet.
_TELL_EVERY = 1.0


class Attempt:
    """One execution. `begin`, then events do the rest; `on_end` is called when it is over."""

    def __init__(
        self,
        loop: Loop,
        channel: Channel,
        claim: dict[str, Any],
        spool: str,
        on_end: Callable[[Attempt], None],
        on_told: Callable[[Attempt], None],
        is_crowded: Callable[[], bool] = lambda: False,
        start: Callable[..., int] = launch,
    ) -> None:
        self.claim = claim
        self.trial: int = claim["trial"]["number"]
        self.number: int = claim["attempt"]
        self.name: str = claim["trial"]["name"]
        self.pid: int | None = None
        self.words: list[str] = []
        self.exit_code: int | None = None
        self.begun = time.monotonic()
        self.ending: str | None = None
        """The cause that is given once it has ended, where somebody ended it."""
        self._loop = loop
        self._channel = channel
        self._on_end = on_end
        self._on_told = on_told
        self.token = os.urandom(8).hex()
        self._spool = spool
        self._tail = b""
        self._kills = kills_for_memory()
        self._next_signal: Timer | None = None
        self._is_signalling = False
        self._leaves_on_term = False
        self._last_call = GRACE_SECONDS
        self._heard: set[int] = set()
        self._output = self._copy = -1
        self._is_settled = False
        self._run_code: int | None = None
        self.seconds = 0.0
        self.cause: str | None = None
        self.echo: Echo | None = None
        """Shows its output as it comes, where somebody wants to see it."""
        self.gpus: tuple[str, ...] = ()
        self.usage: dict[str, Any] = {}
        """What it has used, as the sampler saw it last."""
        self.rows: tuple[int, int, float | None] = (0, 0, None)
        self.console_bytes = 0
        self.lines, self.line_at = 0, 0.0
        """How often it logged, at how many steps, and how often it printed; with the last time."""
        self._is_crowded = is_crowded
        self._start = start

    def begin(self, workspace: Workspace, agent: str, keeper: Keeper) -> None:
        run = self.claim["run"]
        self.workspace = workspace
        self.record = record = Record(
            f"{self._spool}/{run['id']}-{self.token}.json",
            {
                "run": run["key"],
                "number": self.number,
                "trial": self.trial,
                "agent": agent,
                "token": self.token,
                "host": socket.gethostname(),
                "checkpoints": workspace.checkpoints,
                "begun_at": time.time(),
                **processes.identity(),
            },
        )
        self._execution = Execution(
            self._loop, self._channel, record, lambda: self.end("stopped"),
            lambda: self._on_told(self),
        )  # fmt: skip
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._copy = os.open(record.copy, flags, 0o600)
        self._output, theirs = os.pipe()
        os.set_blocking(self._output, False)
        failed = None
        try:
            self._launch(workspace, theirs, keeper)
        except NotStarted as error:
            os.write(theirs, f"runyard: {error}\n".encode(errors="replace"))
            failed = error.exit_code
        except OSError:
            os.close(self._output)
            os.close(self._copy)
            record.remove()
            raise
        finally:
            os.close(theirs)
        self._loop.watch(self._output, READ, self._on_output)
        if failed is not None:
            self._is_over(failed)

    def _launch(self, workspace: Workspace, output: int, keeper: Keeper) -> None:
        words = self.words = workspace.prepare()
        environ = {**workspace.environ, processes.MARK: self.token}
        keeper.begins(self.token)
        self.pid = self._start(words, environ, workspace.folder, output)
        keeper.began(self.pid, self.token)
        self.record.write(
            group=self.pid, group_began=processes.start_time(self.pid), **keeper.identity
        )

    def keep_with(self, keeper: Keeper) -> None:
        """It has a new keeper."""
        self.record.write(**keeper.identity)
        if self.pid is not None:
            keeper.began(self.pid, self.token)

    @property
    def runs(self) -> bool:
        return self.exit_code is None

    def look(self) -> bool:
        """Whether it has ended; called whenever some child has."""
        if self.pid is None or self.exit_code is not None:
            return False
        # It stays a zombie until its end is on disk: its number is nobody else's until then.
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        status = os.waitid(os.P_PID, self.pid, flags)
        if status is None:
            return False
        by_signal = status.si_code != os.CLD_EXITED
        code = -status.si_status if by_signal else status.si_status
        # Lightning, asked to end by TERM, leaves with 0: cut off all the same.
        self._is_over(code or (128 + signal.SIGTERM if self._leaves_on_term else 0))
        return True

    def end(self, cause: str) -> None:
        """Ask it to end now. The first cause is the one that counts."""
        if self.runs and self.ending is None:
            self.ending = cause
            self._signal_after(0.0, signal.SIGTERM)

    def end_as(self, exit_code: int) -> None:
        """End it now, and count it as what its run said: that is over, and it hangs."""
        if self.runs and self.ending is None:
            self._run_code = exit_code
            self._signal_after(0.0, signal.SIGTERM)

    def leave(self, cause: str, seconds: float, last_call: float = GRACE_SECONDS) -> None:
        """Tell it to save and leave within `seconds`; then it is asked to end, and killed.

        `last_call`: from asking to killing. The stop file is for everybody; the signal only for
        who has a handler, since to others it would be the end.
        """
        if not self.runs:
            return
        if self.ending is None:
            self.ending = cause
        self._last_call = last_call
        self._channel.announce_leaving(self.claim)
        self.workspace.write_stop_file(cause)
        self._tell_to_save()
        self._signal_after(seconds, signal.SIGTERM)

    def can_save(self) -> bool:
        """Whether waiting for it to save makes sense: it listens, or has saved before."""
        if self.pid is None:
            return False
        return processes.listens(self.pid, self.token, signal.SIGUSR2) or self.has_saved()

    def has_later(self) -> bool:
        """Whether a later attempt of its trial has begun, as the trial's folder says."""
        there = attempt_in(self.workspace.checkpoints, self.workspace.run_id)
        return there is not None and there > self.number

    def has_saved(self) -> bool:
        """Whether its trial has a checkpoint, of this attempt or of one before."""
        return has_saved(self.workspace.checkpoints)

    def _tell_to_save(self) -> None:
        if self.pid is not None and self.runs:
            processes.send_to_listeners(self.pid, self.token, signal.SIGUSR2, self._heard)
            self._loop.after(_TELL_EVERY, self._tell_to_save)

    def kill(self) -> None:
        """End it at once, whatever its client has not sent yet."""
        if self.pid is not None and self.runs:
            processes.send(self.pid, signal.SIGKILL)

    def _signal_after(self, seconds: float, number: int) -> None:
        if self._is_signalling:
            return  # It is being ended, and what follows is on its way.
        if self._next_signal is not None:
            self._next_signal.cancel()

        def send_signal() -> None:
            if self.pid is None or not self.runs:
                return
            if self.ending == "node":  # Somebody else has the trial: its rows are not ours to send.
                processes.send(self.pid, number)
                self._signal_after(self._last_call, signal.SIGKILL)
            else:
                self._end_program(self.pid, number)

        if seconds:
            self._next_signal = self._loop.after(seconds, send_signal)
        else:
            send_signal()

    def _end_program(self, group: int, number: int) -> None:
        """In a process of its own: its client is given time to send what it holds."""
        from runyard.node.attempt.client_finish import (  # Not at our start.
            FINISH_SECONDS,
            end_programs,
        )

        self._is_signalling = True
        self._leaves_on_term |= processes.listens(group, self.token, signal.SIGTERM)
        self._next_signal = self._loop.after(2 * FINISH_SECONDS + self._last_call, self.kill)
        ended, held = os.pipe()
        twin = processes.fork_twin(lambda: end_programs([group], [self.token], number), (held,))
        os.close(held)

        def has_signalled(_events: int) -> None:
            self._loop.forget(ended)
            os.close(ended)
            os.waitpid(twin, 0)
            self._is_signalling = False
            if self.runs:
                # Ranks have their clients finish themselves, each on its node.
                more = FINISH_SECONDS if processes.has_ranks(self.token) else 0.0
                self._signal_after(self._last_call + more, signal.SIGKILL)

        self._loop.watch(ended, READ, has_signalled)

    def _is_over(self, exit_code: int) -> None:
        if self._run_code is not None:
            exit_code = self._run_code
        self.exit_code = exit_code
        self.seconds = time.monotonic() - self.begun
        if self._next_signal is not None:
            self._next_signal.cancel()
        self._on_output(READ)
        self.cause = self._find_cause(exit_code)
        self.record.write(exit_code=exit_code, cause=self.cause, ended_at=time.time())
        self._wait_for()
        with contextlib.suppress(OSError):
            os.unlink(self.workspace.stop_file)
        self._is_settled = True
        if self._output < 0:
            self._execution.finish_console()
        self._on_end(self)
        if self._output >= 0:
            self._loop.after(LINGER_SECONDS, self._close_output)

    def was_ended(self, cause: str) -> None:
        """It has ended, and by whom is known only now."""
        self.ending = cause
        self.cause = self._find_cause(self.exit_code or 0)
        self.record.write(cause=self.cause)

    def _find_cause(self, exit_code: int) -> str | None:
        folder, begun = self.workspace.checkpoints, self.record.content["begun_at"]
        cause = final_cause(
            exit_code,
            self.ending,
            cause_of(exit_code, self._tail, self._kernel_kills),
            asked=asked_to_go_on(folder, begun),
            saved=has_saved(folder, begun),
        )
        return "crowded" if cause == "memory" and self._is_crowded() else cause

    def _wait_for(self) -> None:
        """Let the process go; the kernel then tells what it used, to its very end."""
        if self.pid is None:
            return
        counted = os.wait4(self.pid, 0)[2]
        seconds = counted.ru_utime + counted.ru_stime
        memory = counted.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        self.usage["cpu_seconds"] = round(max(seconds, self.usage.get("cpu_seconds", 0.0)), 2)
        self.usage["memory_peak"] = max(memory, self.usage.get("memory_peak", 0))
        self.record.write(usage=self.usage)

    def _kernel_kills(self) -> bool:
        return kills_for_memory() > self._kills

    def hurry(self, channel: Channel) -> None:
        """Have the console's end on this channel, before what is sent there next."""
        self._execution.console.hurry(channel)

    def end_rest(self, number: int, for_client: int = 0) -> bool:
        """Send a signal to what the program left behind; says whether there was anything.

        The wandb client's process sends what was logged and ends by itself: it gets another one.
        """
        if self.pid is None:
            return False
        left = processes.send(self.pid, number)
        # One that ended as it should may have meant what left its group: a server, a viewer.
        if self.exit_code != 0:
            for pid in processes.marked([self.token]):
                left = True
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, for_client if processes.is_client(pid) else number)
        return left

    def is_told(self, part: str) -> None:
        """The server has the console, or the end."""
        self._execution.is_told(part)

    def _on_output(self, _events: int) -> None:
        while self._output >= 0:
            try:
                data = os.read(self._output, _READ_AT_ONCE)
            except BlockingIOError:
                break
            if not data:
                self._close_output()
                return
            self._tail = (self._tail + data)[-TAIL_BYTES:]
            self.console_bytes += len(data)
            self.lines += data.count(b"\n") + data.count(b"\r")
            self.line_at = time.time()
            with contextlib.suppress(OSError):  # A full disk must not end the program.
                os.write(self._copy, data)
            if self.echo is not None:
                self.echo.take(data)
            if self.runs:
                break  # Others want their turn.
        self._execution.ship_soon()

    def _close_output(self) -> None:
        if self._output >= 0:
            self._loop.forget(self._output)
            os.close(self._output)
            os.close(self._copy)
            self._output = -1
            if self.echo is not None:
                self.echo.close()
            if self._is_settled:
                self._execution.finish_console()
