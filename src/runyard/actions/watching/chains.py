"""A sweep's chain: which link is at work, and what is still to come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runyard.client.api import Api
from runyard.reading.units import duration
from runyard.schedulers.states import states_of
from runyard.shapes.jobs import Job


@dataclass(frozen=True)
class ChainState:
    """Links of one submission; `to_come` are those that have not begun."""

    form: str
    links: int
    lanes: int
    over: int
    at_work: int
    to_come: int
    seconds_each: float | None
    """How long a link may take."""

    def in_words(self) -> str:
        if self.over >= self.links:
            mend = "`runyard agents add` sends more"
            return f"all {self.links} links are over, and there is work left; {mend}"
        now = f"link {self.over + 1} of {self.links} {'is at work' if self.at_work else 'is next'}"
        later = max(0, self.to_come - (0 if self.at_work else 1))
        side = f", {self.lanes} agents side by side" if self.lanes > 1 else ""
        time = (
            f", up to {duration(self.seconds_each * later)}" if self.seconds_each and later else ""
        )
        return f"{now}{side}; {later} more to come{time}"


def chain_of(api: Api, jobs: Sequence[Job], held: int = 0) -> ChainState | None:
    """The newest chain among a sweep's jobs, of which those that are over may be left out.

    `held`: agents that Slurm's limits have kept out so far.
    """
    chained = [job for job in jobs if job["asked"].get("chain")]
    if not chained:
        return None
    newest = max(chained, key=lambda job: job["submitted_at"])
    of_it = [job for job in chained if job["folder"] == newest["folder"]]
    chain = newest["asked"]["chain"]
    links, width = int(chain["links"]), max(1, int(chain["width"]))
    running = sum(_count(job, "running") for job in of_it)
    if chain["form"] == "requeue":
        # Each of its starts had an agent of its own.
        begun = -(-sum(len(api.jobs.by_key(job["key"])["agents"]) for job in of_it) // width)
        is_over = all(job["ended_at"] is not None for job in of_it)
        at_work = min(1, running)
        to_come = 0 if is_over else max(0, links - begun)
    else:
        at_work = min(links, -(-running // width))
        waiting = sum(job["tasks"] for job in of_it if job["ended_at"] is None) - running
        waiting -= sum(_count(job, "ended") for job in of_it if job["ended_at"] is None)
        to_come = min(links - at_work, -(-(max(0, waiting) + held) // width))
    return ChainState(
        form=chain["form"],
        links=links,
        lanes=int(chain["lanes"]),
        over=links - at_work - to_come,
        at_work=at_work,
        to_come=to_come,
        seconds_each=newest["asked"].get("time"),
    )


def _count(job: Job, phase: str) -> int:
    return sum(count for state, count in states_of(job["states"]) if state.phase == phase)
