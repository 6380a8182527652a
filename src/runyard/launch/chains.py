"""A chain: jobs that follow one another for the same work. Pure.

*array*: one array of which so many tasks run at a time as there are agents side by side.
*dependency*: each job waits for the one before it. *requeue*: one job that goes back to the queue
at its end, as often as it has links; a site says in its profile where that is the better way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runyard.config.request import Request


@dataclass(frozen=True)
class Chain:
    """`links` jobs after one another, with `lanes` agents side by side in each."""

    links: int
    form: str
    lanes: int = 1
    width: int = 1
    """The scheduler's tasks in a link; one where the agents are on the nodes of one job."""

    @property
    def agents(self) -> int:
        """Agents that are submitted."""
        return self.lanes if self.form == "requeue" else self.lanes * self.links

    @property
    def record(self) -> dict[str, Any]:
        """For the server's memory of its jobs."""
        return {
            "links": self.links,
            "form": self.form,
            "lanes": self.lanes,
            "width": self.width,
        }


def plan_chain(request: Request, lanes: int, *, can_requeue: bool = True) -> Chain | None:
    links, elasticity = request.agents.chain, request.profile.elasticity
    if links is None:
        return None
    form = elasticity.chain
    may_requeue = can_requeue and elasticity.requeue
    if form == "requeue" and (request.agents.form == "nodes" or not may_requeue):
        # The agents of such a job end one by one: its script cannot tell for all of them.
        form = "dependency"
    if form == "array" and request.agents.form != "array":
        form = "dependency"
    return Chain(links, form, lanes, 1 if request.agents.form == "nodes" else lanes)
