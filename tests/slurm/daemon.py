"""One daemon: a child process in the foreground, with its output in a file."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

START_SECONDS = 180.0
STOP_SECONDS = 2.0
POLL_SECONDS = 0.02
LOG_LINES_SHOWN = 15


class ClusterError(Exception):
    """The disposable cluster did not do what it was told; the message holds Slurm's own words."""


@dataclass(frozen=True)
class Daemon:
    name: str
    process: subprocess.Popen[bytes]
    log: Path
    command: Sequence[str]
    env: Mapping[str, str]

    @classmethod
    def start(cls, name: str, command: Sequence[str], env: Mapping[str, str], log: Path) -> Daemon:
        with log.open("ab") as output:
            process = subprocess.Popen(
                command,
                env=env,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # A Ctrl-C in the terminal is for the tests, which then end the daemons in order.
                start_new_session=True,
            )
        return cls(name, process, log, command, env)

    def kill(self) -> None:
        """Without a word, as a power cut does."""
        self.process.kill()
        self.process.wait()

    def again(self) -> Daemon:
        """The same, started anew."""
        return Daemon.start(self.name, self.command, self.env, self.log)

    def check_alive(self) -> None:
        code = self.process.poll()
        if code is not None:
            raise ClusterError(f"{self.name} ended with exit code {code}:\n{self.last_words()}")

    def has_ended(self, seconds: float = STOP_SECONDS) -> bool:
        """Whether it is over, or is within a moment: who lost it may notice first."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def last_words(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
        return "\n".join(f"  {line}" for line in lines) or "  (it printed nothing)"

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Wait for a sign of readiness; a daemon that ends or takes too long is an error."""
        deadline = time.monotonic() + START_SECONDS
        while not ready():
            self.check_alive()
            if time.monotonic() > deadline:
                problem = f"{self.name} is not ready after {START_SECONDS:.0f} s"
                raise ClusterError(f"{problem}:\n{self.last_words()}")
            time.sleep(POLL_SECONDS)


def end_together(daemons: Sequence[Daemon]) -> None:
    """Ask all of them to end, wait for them together, and kill those that did not."""
    for daemon in daemons:
        daemon.process.terminate()
    deadline = time.monotonic() + STOP_SECONDS
    for daemon in daemons:
        try:
            daemon.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            daemon.process.kill()
            daemon.process.wait()
