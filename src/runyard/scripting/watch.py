"""Looking at a sweep until it is over, or until nobody works on it any more."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from runyard.actions.connect import open_server
from runyard.actions.sweeping.agent_process import AgentStarted
from runyard.client.api import Api
from runyard.client.jobs import Job
from runyard.client.sweeps import Sweep, Trial
from runyard.errors import RunyardError, ServerError
from runyard.home import Home
from runyard.scripting.options import log_notice

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
# Jobs of one list share what was read so recently.
_FRESH = 0.05
_ASK_CLUSTER_EVERY = 15.0
# The server may be restarted while we wait.
_PATIENCE = 60.0


class NobodyWorks(RunyardError):
    """What was waited for will not come: no agent and no job is left that could do it."""


class Watch:
    """One sweep, as the server knows it now."""

    def __init__(self, sweep: Sweep, home: Home, agent: AgentStarted | None = None) -> None:
        self.key = sweep["key"]
        self.id = sweep["id"]
        self.home = home
        self._agent = agent
        self._trials: tuple[float, list[Trial]] | None = None
        self._asked_cluster = time.monotonic()

    @property
    def api(self) -> Api:
        return open_server(log_notice, self.home, quiet=True)

    def sweep(self) -> Sweep:
        return self.api.sweeps.sweep(self.key)

    def trials(self) -> list[Trial]:
        now = time.monotonic()
        if self._trials is None or now - self._trials[0] > _FRESH:
            self._trials = now, self.api.sweeps.trials(self.key)
        return self._trials[1]

    def jobs(self) -> list[Job]:
        return self.api.jobs.jobs(sweep=self.key)

    def wait(self, is_over: Callable[[], bool], timeout: float | None) -> None:
        """TimeoutError after so many seconds; NobodyWorks where waiting longer is of no use."""
        end = None if timeout is None else time.monotonic() + timeout
        pause, heard = _FIRST_PAUSE, time.monotonic()
        while True:
            try:
                # Before it is asked whether it is over: what is left now has ended, or never will.
                is_left = self._is_left()
                if is_over():
                    return
                heard = time.monotonic()
            except ServerError:
                if time.monotonic() - heard > _PATIENCE:
                    raise
                is_left = False
            if is_left:
                raise NobodyWorks(
                    f"{self.id} is not done, and nobody works on it any more",
                    mend=f"`runyard status {self.id}` says why; `runyard sweep {self.id}` goes on",
                )
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"{self.id} is not done after {timeout:g} s")
            rest = pause if end is None else min(pause, max(0.0, end - time.monotonic()))
            time.sleep(rest)
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    def _is_left(self) -> bool:
        """Whether all that was started for it is gone, and nobody else has come."""
        if self._agent is not None:
            return not _is_alive(self._agent.pid) and not self.sweep()["agents"]
        if time.monotonic() - self._asked_cluster < _ASK_CLUSTER_EVERY:
            return False
        from runyard.actions.submitting.submission import send_held_agents
        from runyard.launch.watching import look

        self._asked_cluster = time.monotonic()
        api = self.api
        looked = look(api.jobs, self.jobs())
        if looked.trouble or any(job["ended_at"] is None for job in looked.jobs):
            return False
        return not self.sweep()["agents"] and not send_held_agents(api, self.home)


def _is_alive(pid: int) -> bool:
    """Whether an agent that this process started runs; it need not have been reaped yet."""
    try:
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    except ChildProcessError:  # Reaped; or this process ignores its children, or was forked.
        return Path(f"/proc/{pid}").exists()
