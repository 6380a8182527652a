"""Wait until a sweep is over, or until no agent and no job is left for it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from runyard.actions.connect import open_server
from runyard.actions.sweeping.agent_process import AgentStarted
from runyard.client.api import Api
from runyard.errors import RunyardError, ServerError
from runyard.home import Home
from runyard.schedulers.protocol import POLL_SECONDS
from runyard.scripting.options import log_notice
from runyard.shapes.jobs import Job
from runyard.shapes.sweeps import Sweep, Trial

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
# The jobs of one list share an answer that is not older.
_CACHE_SECONDS = 0.05
# The server may be restarted while we wait.
_SERVER_SILENT_SECONDS = 60.0


class NobodyWorks(RunyardError):
    """The result will never come: no agent and no job is left that could produce it."""


class Watch:
    """One sweep, as the server knows it now."""

    def __init__(self, sweep: Sweep, home: Home, agent: AgentStarted | None = None) -> None:
        self.key = sweep["key"]
        self.id = sweep["id"]
        self.home = home
        self._agent = agent
        self._trials: tuple[float, list[Trial]] | None = None
        self._polled_at = time.monotonic()

    @property
    def api(self) -> Api:
        return open_server(log_notice, self.home, quiet=True)

    def sweep(self) -> Sweep:
        return self.api.sweeps.sweep(self.key)

    def trials(self) -> list[Trial]:
        now = time.monotonic()
        if self._trials is None or now - self._trials[0] > _CACHE_SECONDS:
            self._trials = now, self.api.sweeps.trials(self.key)
        return self._trials[1]

    def jobs(self) -> list[Job]:
        return self.api.jobs.jobs(sweep=self.key)

    def cancel(self) -> None:
        """End the sweep, with its agents and its jobs."""
        from runyard.actions.ending.cancel import cancel

        cancel(self.api, f"sweep:{self.id}", lambda _question: True)

    def wait(self, is_over: Callable[[], bool], timeout: float | None) -> None:
        """TimeoutError after so many seconds; NobodyWorks where waiting longer is of no use."""
        end = None if timeout is None else time.monotonic() + timeout
        pause, answered_at = _FIRST_PAUSE, time.monotonic()
        while True:
            try:
                # Before is_over: an agent that ends in between has finished the sweep.
                is_abandoned = self._is_abandoned()
                if is_over():
                    return
                answered_at = time.monotonic()
            except ServerError:
                if time.monotonic() - answered_at > _SERVER_SILENT_SECONDS:
                    raise
                is_abandoned = False
            if is_abandoned:
                raise NobodyWorks(
                    f"{self.id} is not done, and nobody works on it any more",
                    mend=f"`runyard status {self.id}` says why; `runyard sweep {self.id}` goes on",
                )
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"{self.id} is not done after {timeout:g} s")
            rest = pause if end is None else min(pause, max(0.0, end - time.monotonic()))
            time.sleep(rest)
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    def _is_abandoned(self) -> bool:
        """Whether the agent or the jobs that were started for it are gone, and no other came."""
        if self._agent is not None:
            return not _is_alive(self._agent.pid) and not self.sweep()["agents"]
        if time.monotonic() - self._polled_at < POLL_SECONDS:
            return False
        from runyard.actions.submitting.submission import send_held_agents
        from runyard.launch.watching import look

        self._polled_at = time.monotonic()
        api = self.api
        answer = look(api.jobs, self.jobs())
        if answer.trouble or any(job["ended_at"] is None for job in answer.jobs):
            return False
        return not self.sweep()["agents"] and not send_held_agents(api, self.home)


def _is_alive(pid: int) -> bool:
    """Whether an agent that this process started runs; it need not have been reaped yet."""
    try:
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    except ChildProcessError:  # Reaped; or this process ignores its children, or was forked.
        return Path(f"/proc/{pid}").exists()
