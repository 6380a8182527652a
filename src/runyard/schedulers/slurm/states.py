"""Slurm's states of a job, as its commands write them, into those of `schedulers/states.py`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from runyard.schedulers.states import STATES, State, state_named

_COMPACT = {
    "PD": "PENDING",
    "CF": "CONFIGURING",
    "PO": "POWER_UP_NODE",
    "RQ": "REQUEUED",
    "RF": "REQUEUE_FED",
    "RH": "REQUEUE_HOLD",
    "RD": "RESV_DEL_HOLD",
    "SE": "SPECIAL_EXIT",
    "R": "RUNNING",
    "S": "SUSPENDED",
    "ST": "STOPPED",
    "SI": "SIGNALING",
    "RS": "RESIZING",
    "EX": "EXPEDITING",
    "SO": "STAGE_OUT",
    "CG": "COMPLETING",
    "UD": "UPDATE_DB",
    "CD": "COMPLETED",
    "F": "FAILED",
    "CA": "CANCELLED",
    "TO": "TIMEOUT",
    "OOM": "OUT_OF_MEMORY",
    "NF": "NODE_FAIL",
    "BF": "BOOT_FAIL",
    "LF": "LAUNCH_FAILED",
    "RC": "RECONFIG_FAIL",
    "PR": "PREEMPTED",
    "DL": "DEADLINE",
    "RV": "REVOKED",
}
# These stand beside a state of the job (Slurm writes RUNNING,COMPLETING or just the flag) and say
# more than it.
_FLAGS = (
    "COMPLETING", "STAGE_OUT", "CONFIGURING", "POWER_UP_NODE", "REQUEUE_HOLD", "SPECIAL_EXIT",
    "RESV_DEL_HOLD", "REQUEUED", "REQUEUE_FED", "STOPPED", "RESIZING", "SIGNALING", "UPDATE_DB",
    "LAUNCH_FAILED", "RECONFIG_FAIL", "REVOKED", "EXPEDITING",
)  # fmt: skip
# As other releases and commands write them.
_ALSO = {
    "CANCELED": "CANCELLED",
    "NODE_FAILED": "NODE_FAIL",
    "OUT_OF_ME": "OUT_OF_MEMORY",
    "OOM_KILL": "OUT_OF_MEMORY",
    "TIMELIMIT": "TIMEOUT",
}


def read_state(text: str) -> State:
    """A state as any command of Slurm's writes it: R, RUNNING, RUNNING+, CANCELLED by 1000."""
    # Cut to its column's width, sacct ends a word with a plus sign.
    words = re.split(r"[,+| ]+", text.strip().partition(" by ")[0].upper())
    names = [name for word in words if (name := _name_of(word)) is not None]
    flags = [name for name in names if name in _FLAGS]
    return state_named((flags or names or [text])[0])


def counted(states: Iterable[str]) -> dict[str, int]:
    """How many of these are in which state, by long name."""
    counts: dict[str, int] = {}
    for text in states:
        name = read_state(text).name
        counts[name] = counts.get(name, 0) + 1
    return counts


def _name_of(word: str) -> str | None:
    if word in STATES:
        return word
    if word in _COMPACT:
        return _COMPACT[word]
    if word in _ALSO:
        return _ALSO[word]
    # A column may be too narrow for a long name; four letters mean one state only.
    longer = [name for name in STATES if len(word) >= 4 and name.startswith(word)]
    return longer[0] if len(longer) == 1 else None
