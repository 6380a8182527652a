"""The life of a trial, as one table: what can happen to it in which state, and what follows.

`trials.move` is the only writer of a trial's state, and asks this table. What the trial's run and
its attempt become stands beside it, so that the three never disagree. The same table is in
docs/design.md; a test holds them equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runyard.end_causes import CAUSES
from runyard.search.options import RETRIES
from runyard.vocabulary import ENDED_STATES

if TYPE_CHECKING:
    from runyard.end_causes import Follow

# How often a trial may be cut off without progress where the sweep file says nothing.
DEFAULT_RETRIES = {**RETRIES, "killed": 2, "time": 5}

STATES = ("waiting", "running", "paused", *ENDED_STATES)
# Not states of a row: there is no trial yet; and a canceled one whose run was deleted, for good.
NEW, DELETED = "new", "deleted"


class Impossible(Exception):
    """A change that the table does not have: a fault of ours, and nothing is written."""


@dataclass(frozen=True)
class Transition:
    when: str
    before: tuple[str, ...]
    after: str
    # The state of its run; "": as it is. A run whose program was seen to end keeps how that was,
    # unless it goes on: then it is preempted.
    run: str = ""
    # What becomes of the newest attempt, where runyard's own agents run it.
    attempt: str = ""


# A lease is held in the state running, and in no other.
TRANSITIONS: dict[str, Transition] = {
    "enqueue": Transition(
        "a controller or scheduler has drawn it, or a deleted run has freed its point of the grid",
        (NEW,),
        "waiting",
    ),
    "claim": Transition(
        "an agent takes it", (NEW, "waiting"), "running", run="running", attempt="begins"
    ),
    "hand back": Transition(
        "W&B's agent never got what it was given", ("running",), "waiting", run="pending"
    ),
    "cut": Transition(
        "the attempt ended, or its lease ran out: it goes on later, or is tried again",
        ("running",),
        "waiting",
        run="preempted",
        attempt="ends",
    ),
    "return": Transition(
        "its lease ran out, and who had it is heard before anybody else takes it",
        ("waiting", "failed", "canceled"),
        "running",
        run="running",
        attempt="goes on",
    ),
    "pause": Transition(
        "early stopping puts it off", ("running",), "paused", run="preempted", attempt="ends"
    ),
    "promote": Transition("a paused one turned out well", ("paused",), "waiting"),
    "finish": Transition(
        "the program finished", ("running",), "finished", run="finished", attempt="ends"
    ),
    "fail": Transition(
        "the attempt ended, and its tries are used up",
        ("running",),
        "failed",
        run="failed",
        attempt="ends",
    ),
    "stop": Transition(
        "it was asked to stop, and ended", ("running",), "stopped", run="killed", attempt="ends"
    ),
    "cancel": Transition(
        "it was cancelled, or cut in a sweep that is over, and ended",
        ("running",),
        "canceled",
        run="killed",
        attempt="ends",
    ),
    "stop waiting": Transition(
        "stopped while nobody has it, or never promoted",
        ("waiting", "paused"),
        "stopped",
        run="killed",
    ),
    "cancel waiting": Transition(
        "its sweep is stopped or cancelled", ("waiting", "paused"), "canceled", run="killed"
    ),
    "retry": Transition(
        "retried by hand or in a second round, or its sweep is resumed",
        ("failed", "canceled"),
        "waiting",
    ),
    "delete": Transition("its run is deleted", STATES, DELETED),
}

# What the end of an attempt is called, by the state that it leads to.
ENDS = {
    "waiting": "cut",
    "paused": "pause",
    "finished": "finish",
    "failed": "fail",
    "stopped": "stop",
    "canceled": "cancel",
}


def after(event: str, state: str) -> Transition:
    """What an event makes of a trial in that state; raises `Impossible` where it cannot happen."""
    transition = TRANSITIONS[event]
    if state not in transition.before:
        raise Impossible(f"a trial that is {state} cannot {event}")
    return transition


def as_markdown() -> str:
    """The table as docs/design.md has it."""
    lines = [
        "| event | when | from | to | its run | its attempt |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for event, transition in TRANSITIONS.items():
        before = "any" if transition.before == STATES else ", ".join(transition.before)
        cells = (
            event,
            transition.when,
            before,
            transition.after,
            transition.run or "-",
            transition.attempt or "-",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


@dataclass(frozen=True)
class Settlement:
    """The trial's next state; `queue` says at which end of the queue it waits, if it does."""

    state: str
    queue: Follow
    # Ends by cause since there was progress.
    tries: Mapping[str, int]


def settle(
    cause: str,
    *,
    stop: str | None,
    tries: Mapping[str, int],
    progressed: bool,
    retries: Mapping[str, int],
) -> Settlement:
    """What an attempt's end makes of its trial.

    `stop` is what the trial was asked for before (stopped, canceled, paused): that outranks how
    its program then took it. `progressed`: it has more steps than whenever it was cut off before.
    """
    if stop is not None:
        cause = stop
    rule = CAUSES[cause]
    counts = {} if progressed else dict(tries)
    if rule.follow == "final":
        return Settlement(rule.state, "final", counts)
    if rule.counted_as is not None and not (rule.forgiven_by_progress and progressed):
        counts[rule.counted_as] = counts.get(rule.counted_as, 0) + 1
        if counts[rule.counted_as] > _limit(rule.counted_as, retries):
            return Settlement("failed", "final", counts)
    return Settlement("waiting", rule.follow, counts)


def forgive(cause: str | None, tries: Mapping[str, int]) -> Mapping[str, int]:
    """The tries of a trial whose last attempt turns out to have made progress.

    That is known when the next one goes on from a checkpoint: rows behind it are logged again.
    """
    rule = None if cause is None else CAUSES[cause]
    if rule is None or rule.counted_as is None or rule.forgiven_by_progress:
        return {}
    return {name: 1 for name in tries if name == rule.counted_as}


def _limit(name: str, retries: Mapping[str, int]) -> int:
    limit = retries.get(name, DEFAULT_RETRIES[name])
    node = retries.get("node", DEFAULT_RETRIES["node"])
    # Who changed the limit for nodes expects that others kill: it holds for signal 9 too.
    return node if name == "killed" and node != DEFAULT_RETRIES["node"] else limit


def after_failure(ended: Mapping[str, int], limit: int) -> bool:
    """Whether a sweep gives up: the first `limit` of its trials to end have all failed.

    `ended` counts its trials by final state.
    """
    if limit <= 0 or ended.get("finished", 0) or ended.get("stopped", 0):
        return False
    return ended.get("failed", 0) >= limit
