"""What becomes of a trial when its attempt ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runyard.server.sweeps.policy.causes import CAUSES, DEFAULT_RETRIES, Follow


@dataclass(frozen=True)
class Settlement:
    """The trial's next state; `queue` says at which end of the queue it waits, if it does."""

    state: str
    queue: Follow
    # Ends by cause since there was progress.
    tries: Mapping[str, int]
    # Why, for people.
    told: str


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
    its program then took it. `progressed`: it has more steps than when it was last cut off.
    """
    if stop is not None:
        cause = stop
    rule = CAUSES[cause]
    kept = {} if progressed else dict(tries)
    if rule.follow == "final":
        return Settlement(rule.state, "final", kept, rule.told)
    if rule.counted_as is not None and not (rule.forgiven_by_progress and progressed):
        kept[rule.counted_as] = kept.get(rule.counted_as, 0) + 1
        if kept[rule.counted_as] > _limit(rule.counted_as, retries):
            return Settlement("failed", "final", kept, rule.told)
    return Settlement("waiting", rule.follow, kept, rule.told)


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
