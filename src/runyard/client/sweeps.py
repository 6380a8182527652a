"""Sweeps and their agents, through the server's own API, typed.

Every call may be repeated when no answer came: agents, claims and ends are known by what they
bring.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from runyard.client.http import ApiPart
from runyard.shapes.sweeps import (
    Begun,
    Claimed,
    CreatedSweep,
    Held,
    Importance,
    Renewed,
    Sweep,
    SweepColumns,
    Trial,
    Work,
)
from runyard.vocabulary import ENDED_STATES as ENDED_STATES
from runyard.vocabulary import OPEN_STATES as OPEN_STATES

SweepState = Literal["running", "paused", "finished", "canceled"]


class SweepApi(ApiPart):
    """Every call about sweeps."""

    def create(
        self,
        config: str | Mapping[str, Any],
        *,
        project: str | None = None,
        entity: str | None = None,
        folder: str | None = None,
        name: str | None = None,
        prior_runs: Sequence[str] = (),
        seed: int | None = None,
    ) -> CreatedSweep:
        """Make a sweep of a file's text or data; `folder` is where its programs run.

        Its trials have their own folders there: sweeps/ID/NAME.
        """
        return self._connection.post(
            "/api/sweeps",
            {
                "config": config,
                "project": project,
                "entity": entity,
                "folder": folder,
                "name": name,
                "prior_runs": list(prior_runs),
                "seed": seed,
            },
        )

    def sweeps(
        self, *, project: str | None = None, limit: int | None = None, open_only: bool = False
    ) -> list[Sweep]:
        """The newest first; with `open_only`, those that are not over."""
        return self._connection.get(
            "/api/sweeps", project=project, limit=limit, open=1 if open_only else None
        )

    def find(self, words: str) -> Sweep:
        """By id, by name, or by a part of either that only one has."""
        return self._connection.get("/api/sweep", name=words)

    def sweep(self, key: int) -> Sweep:
        return self._connection.get(f"/api/sweeps/{key}")

    def trials(self, key: int, *, state: str | None = None, last: int | None = None) -> list[Trial]:
        """By number; with `last`, only so many, the last to end, in the order of their ends."""
        return self._connection.get(f"/api/sweeps/{key}/trials", state=state, last=last)

    def work(self, key: int) -> Work:
        """Who worked on it, and every attempt."""
        return self._connection.get(f"/api/sweeps/{key}/work")

    def columns(self, key: int) -> SweepColumns:
        return self._connection.get(f"/api/sweeps/{key}/columns")

    def importance(self, key: int) -> Importance:
        """For the first of its metrics; NotFoundError where it has none."""
        return self._connection.get(f"/api/sweeps/{key}/importance")

    def set_state(self, key: int, state: SweepState) -> Sweep:
        """Resume, pause, stop (trials at work go on) or cancel (they end)."""
        return self._connection.post(f"/api/sweeps/{key}/state", {"state": state})

    def delete(self, key: int) -> None:
        """Delete a sweep that nobody has worked on; ServerError where somebody has."""
        self._connection.request("DELETE", f"/api/sweeps/{key}", query=None)

    def set_cap(self, key: int, run_cap: int | None) -> Sweep:
        return self._connection.post(f"/api/sweeps/{key}/cap", {"run_cap": run_cap})

    def set_budget(self, key: int, budget: str | None) -> Sweep:
        """`200 gpu-hours`, or `12 hours` of trials; None takes it away."""
        return self._connection.post(f"/api/sweeps/{key}/budget", {"budget": budget})

    def retry(self, key: int, trials: Sequence[int] | None = None) -> Sweep:
        """Run failed trials again: those named, or all."""
        numbers = None if trials is None else list(trials)
        return self._connection.post(f"/api/sweeps/{key}/retry", {"trials": numbers})

    def begin_agent(
        self,
        key: int,
        *,
        token: str,
        host: str,
        pid: int,
        slots: int,
        job: str | None = None,
        node: str | None = None,
    ) -> Begun:
        """Announce an agent; `token` makes a repeated call the same call.

        `job` and `node` are Slurm's words for where it is: 123, or 123_4 in an array.
        """
        content = {
            "token": token,
            "host": host,
            "pid": pid,
            "slots": slots,
            "job": job,
            "node": node,
        }
        return self._connection.post(f"/api/sweeps/{key}/agents", content)

    def claim(self, agent: int, *, token: str, wait: float = 0.0) -> Claimed:
        """Take the next trial; waits up to `wait` seconds for one.

        `token` is new for each claim, and the same when one is repeated because no answer came:
        that gives the trial which the first call may have taken. After any answer, another token.
        """
        return self._connection.post(f"/api/agents/{agent}/claim", {"token": token, "wait": wait})

    def renew(self, agent: int, running: Sequence[Held]) -> Renewed:
        """Say which attempts are alive; hear which of them are to end now.

        What is to stop or pause is told to its own wandb client first, which ends it and keeps
        every row; the agent hears of it a minute later, if it still runs, or at once if it has no
        client.

        Within `lease_seconds`, or they are handed to somebody else. `lost` is one that was: it must
        end at once, and its end is not told.
        """
        return self._connection.post(f"/api/agents/{agent}/renew", {"running": list(running)})

    def end(
        self,
        agent: int,
        trial: int,
        attempt: int,
        *,
        exit_code: int,
        ended_at: float,
        cause: str | None = None,
    ) -> Trial:
        """An attempt has ended; `exit_code` is negative for the signal that ended it.

        `cause` (finished, go-on, time, preempted, node, cut, memory, nan, program, signal, stopped)
        where the agent knows more than the code tells. It may be told late, and more than once.
        """
        answer = self._connection.post(
            f"/api/agents/{agent}/ends",
            {
                "trial": trial,
                "attempt": attempt,
                "exit_code": exit_code,
                "cause": cause,
                "ended_at": ended_at,
            },
        )
        return answer["trial"]

    def leave(self, agent: int, why: str | None = None) -> None:
        """The agent goes; what it still had goes back to the queue."""
        self._connection.post(f"/api/agents/{agent}/leave", {"why": why})
