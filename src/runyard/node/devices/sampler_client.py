"""The agent's side of the sampler: started when a program has run for a moment, and asked nothing.

What it saw last of each attempt is kept here, and goes to the server with renewals and ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys

from runyard.node.system.loop import READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from runyard.node.attempt.trial_attempt import Attempt
    from runyard.node.system.loop import Loop

_SOURCE = os.path.abspath(f"{os.path.dirname(__file__)}/../../..")
SAMPLER = (
    sys.executable, "-I", "-S", "-c",
    f"import sys; sys.path.insert(0, {_SOURCE!r}); "
    "from runyard.node.devices.sampler import main; sys.exit(main())",
)  # fmt: skip
# What ends before that needs no sampler: the kernel tells what it used.
_BEGIN_AFTER = 1.0
_MOST_STARTS = 3
# Only for us: how the packing of a GPU is decided, and what is of this moment alone.
_OWN = ("rows", "steps", "row_at", "memory", "vram", "lost_teardown")


class Sampling:
    """`watch` attempts; `on_look` is called with every new look. `helpers` are waited for."""

    def __init__(
        self,
        loop: Loop,
        on_look: Callable[[dict[str, Any]], None],
        helpers: set[int],
        report: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._on_look = on_look
        self._watched: dict[str, Attempt] = {}
        self._input = self._output = -1
        self._rest = b""
        self._starts = 0
        self._helpers = helpers
        self._report = report
        self._lost_teardowns: set[str] = set()
        self._pid = 0

    def watch(self, attempt: Attempt) -> None:
        """Look at it from now on, if it lives long enough to be looked at."""

        def begin() -> None:
            if attempt.runs and attempt.pid is not None:
                self._watched[attempt.token] = attempt
                if self._input < 0:
                    self._start()
                else:
                    self._tell(_about(attempt))

        self._loop.after(_BEGIN_AFTER, begin)

    def forget(self, attempt: Attempt) -> None:
        """It has ended."""
        if self._watched.pop(attempt.token, None) is not None:
            self._tell({"ended": attempt.token})

    def close(self) -> None:
        """Nothing more is to be seen; the sampler goes, whatever it is waiting for."""
        if self._pid in self._helpers:
            self._helpers.discard(self._pid)
            with contextlib.suppress(OSError):
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
        for handle in (self._input, self._output):
            if handle >= 0:
                self._loop.forget(handle)
                os.close(handle)
        self._input = self._output = -1

    def _start(self) -> None:
        if self._starts >= _MOST_STARTS:
            return
        self._starts += 1
        import subprocess

        try:
            process = subprocess.Popen(
                SAMPLER,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        process.returncode = 0  # It is waited for by others.
        self._pid = process.pid
        self._helpers.add(self._pid)
        self._input, self._output = os.dup(process.stdin.fileno()), os.dup(process.stdout.fileno())
        process.stdin.close()
        process.stdout.close()
        for handle in (self._input, self._output):
            os.set_blocking(handle, False)
        self._loop.watch(self._output, READ, self._hear)
        for attempt in self._watched.values():
            self._tell(_about(attempt))

    def _tell(self, message: dict[str, Any]) -> None:
        if self._input >= 0:
            # One that does not read is stuck; what it misses, nobody misses.
            with contextlib.suppress(OSError):
                os.write(self._input, json.dumps(message).encode() + b"\n")

    def _hear(self, _events: int) -> None:
        try:
            data = os.read(self._output, 1 << 20)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            if self._watched:
                self._start()
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines[-1:]:  # An older look says nothing that the newest does not.
            with contextlib.suppress(ValueError):
                self._take(json.loads(line))

    def _take(self, samples: dict[str, Any]) -> None:
        for token, seen in samples["attempts"].items():
            attempt = self._watched.get(token)
            if attempt is not None:
                attempt.rows = (int(seen["rows"]), int(seen["steps"]), seen["row_at"])
                attempt.usage = {key: value for key, value in seen.items() if key not in _OWN}
                if seen.get("lost_teardown") and token not in self._lost_teardowns:
                    self._lost_teardowns.add(token)
                    self._report(
                        f"{attempt.name} had done its work and could not exit: wandb's service had "
                        "not received its last message. runyard sent it again"
                    )
        self._on_look(samples)


def _about(attempt: Attempt) -> dict[str, Any]:
    return {
        "began": attempt.token,
        "pid": attempt.pid,
        "folder": attempt.workspace.wandb_folder,
        "run": attempt.workspace.run_id,
        "gpus": list(attempt.gpus),
    }
