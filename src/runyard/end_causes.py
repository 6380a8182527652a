"""Why attempts end: every cause, and what it means, in one table.

Agents name the cause, the server decides by it what becomes of the trial, reports count it. Whoever
asks which causes have something in common asks the table. The standard library only: nodes import
it.
"""

from __future__ import annotations

import signal

from runyard.save_protocol import GO_ON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Follow = Literal["final", "head", "tail"]


class Cause:
    """What follows an attempt's end, and whether it uses up one of the trial's tries.

    `follow`: the trial is over (`final`), or it waits, and is the next to begin (`head`: it was cut
    off) or the last (`tail`: it failed, and is tried again). `state`: the trial's, where it is
    over. `counted_as`: under which name of `retries` it is counted; None: it may happen as often as
    it likes. `forgiven_by_progress`: not counted where the run has more steps than at every cut
    before. `agent_leaves`: the trial does not begin again on the same agent. `shown_by_code`: the
    exit code says as much.
    """

    __slots__ = (
        "agent_leaves", "counted_as", "follow", "forgiven_by_progress", "shown_by_code", "state",
        "text",
    )  # fmt: skip

    def __init__(
        self,
        follow: Follow,
        text: str,
        *,
        state: str = "waiting",
        counted_as: str | None = None,
        forgiven_by_progress: bool = False,
        agent_leaves: bool = False,
        shown_by_code: bool = False,
    ) -> None:
        self.follow = follow
        self.text = text
        self.state = state
        self.counted_as = counted_as
        self.forgiven_by_progress = forgiven_by_progress
        self.agent_leaves = agent_leaves
        self.shown_by_code = shown_by_code


def _over(state: str) -> Cause:
    return Cause("final", state, state=state, shown_by_code=True)


CAUSES: dict[str, Cause] = {
    "finished": _over("finished"),
    "stopped": _over("stopped"),
    "canceled": _over("canceled"),
    "paused": _over("paused"),
    "go-on": Cause("head", "asked to go on later"),
    "preempted": Cause("head", "preempted", agent_leaves=True),
    "time": Cause(
        "head", "cut off by its time limit",
        counted_as="time", forgiven_by_progress=True, agent_leaves=True,
    ),
    "node": Cause(
        "head", "lost with its node or agent",
        counted_as="node", forgiven_by_progress=True, agent_leaves=True,
    ),
    "cut": Cause(
        "head", "ended by a signal after a checkpoint",
        counted_as="node", forgiven_by_progress=True,
    ),
    # On a GPU whose programs find out how many they may be: the next time there are fewer.
    "crowded": Cause("head", "out of memory beside others on its GPU"),
    "memory": Cause("tail", "out of memory", counted_as="memory"),
    # Seen by the agent beside it: the node is there, and so the next time may end the same way.
    "killed": Cause(
        "tail", "killed by signal 9: out of memory, or by somebody's hand",
        counted_as="killed", shown_by_code=True,
    ),
    "program": Cause("tail", "the program failed", counted_as="program", shown_by_code=True),
    "nan": Cause("tail", "a value became NaN or infinite", counted_as="program"),
    "signal": Cause("tail", "ended by a signal", counted_as="program", shown_by_code=True),
}  # fmt: skip

GOES_ON = tuple(name for name, cause in CAUSES.items() if cause.follow == "head")
"""The trial continues from its checkpoint, on this agent or another."""
AGENT_LEAVES = tuple(name for name, cause in CAUSES.items() if cause.agent_leaves)
FAILURES = tuple(name for name, cause in CAUSES.items() if cause.follow == "tail")
"""The attempt's work is lost."""
AS_PLANNED = (*(name for name, cause in CAUSES.items() if cause.follow == "final"), "go-on")
"""Ends that are no trouble."""
NOT_IN_EXIT_CODE = tuple(name for name, cause in CAUSES.items() if not cause.shown_by_code)


def cause_of_exit(exit_code: int, *, preempting: bool = False) -> str:
    """The cause, where only an exit code tells of it; negative for a signal."""
    if exit_code == 0:
        return "finished"
    if exit_code == GO_ON:
        return "go-on"
    if preempting:
        return "preempted"
    # A shell between us and the program turns a signal into 128 and its number.
    number = -exit_code if exit_code < 0 else exit_code - 128
    if number == signal.SIGKILL:
        return "node"  # Nobody says such a thing of itself: the kernel, or who tidied up.
    is_signal = exit_code < 0 or number in signal.valid_signals()
    return "signal" if is_signal else "program"
