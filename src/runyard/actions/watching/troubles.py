"""What is wrong with a sweep, a job or an agent, and what to do about it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from runyard.schedulers.states import states_of
from runyard.shapes.jobs import Job
from runyard.shapes.sweeps import Sweep, SweepAgent

_MORE = {"OUT_OF_MEMORY": "--memory +50%", "TIMEOUT": "--time +50%"}
# A client ends its run a moment before its program ends.
_MAY_HANG_SECONDS = 60.0


def retry_command(job: Job) -> str | None:
    """The command that runs what failed again with more of what the job lacked."""
    bad = [state for state, _ in states_of(job["states"]) if state.is_bad]
    more = next((_MORE[state.name] for state in bad if state.name in _MORE), None)
    if more is None or not job["sweep_id"]:
        return None
    return f"runyard retry {job['sweep_id']} {more}"


def is_left_alone(sweep: Sweep, jobs: Sequence[Job]) -> bool:
    """Whether it waits for trials to be run, with no agent at work and no job on its way."""
    are_coming = any(job["ended_at"] is None for job in jobs)
    return sweep["state"] == "running" and not sweep["agents"] and not are_coming


def hangs_for(agent: SweepAgent) -> float | None:
    """How many seconds a program of it has gone on after its run had ended, if that is long."""
    since = agent.get("over_since")  # An older server does not tell.
    seconds = 0.0 if since is None else time.time() - since
    return None if seconds < _MAY_HANG_SECONDS else seconds
