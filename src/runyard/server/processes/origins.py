"""Where a client's data come from: its own life, or what an earlier process left on disk.

`wandb sync` starts like any client. What gives it away is what clients tell of themselves in the
config (numbers of features, under `_wandb`), and the program that newer ones name: `wandb` itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

# Telemetry's numbers: finish() was called; the run was offline; it came by `wandb sync`, by the
# newer sync, out of tfevents files.
_FINISH, _OFFLINE, _SYNC, _NEWER_SYNC, _TFEVENTS = 2, 4, 42, 76, 49
_LONGEST = 2**53


@dataclass(frozen=True)
class Branch:
    """The run and the step that a new run goes on from."""

    run_id: str
    step: float


@dataclass(frozen=True)
class Origin:
    """What a client tells of where its data come from."""

    is_known: bool = False
    is_sync: bool = False
    # Whether the end that it reports is the process's own, and not made up for want of one.
    knows_end: bool = False
    started_at: float | None = None
    branch: Branch | None = None


def read_origin(config: str | None, program: str | None) -> Origin:
    internals = read_internals(config)
    telemetry = internals.get("t")
    if not isinstance(telemetry, dict):
        return Origin(is_sync=_is_wandb_itself(program))
    numbers = telemetry.get("3")
    features = (
        {feature for feature in numbers if isinstance(feature, int)}
        if isinstance(numbers, list)
        else set()
    )
    return Origin(
        is_known=True,
        is_sync=bool(features & {_OFFLINE, _SYNC, _NEWER_SYNC, _TFEVENTS})
        or _is_wandb_itself(program),
        # Up to 0.25 a sync reports success, also of a process that was killed.
        knows_end=_SYNC not in features or _FINISH in features,
        started_at=_started_at(internals),
        branch=_branch(internals.get("branch_point")),
    )


def read_internals(config: str | None) -> Mapping[str, Any]:
    """What the client keeps for itself in the config."""
    entry = json.loads(config).get("_wandb") if config else None
    internals = entry.get("value") if isinstance(entry, dict) else None
    return internals if isinstance(internals, dict) else {}


def _is_wandb_itself(program: str | None) -> bool:
    """Whether the program is the `wandb` command: a script of that name, or the module."""
    words = (program or "").split()
    if words[:1] == ["-m"]:
        return words[1:2] in (["wandb"], ["wandb.__main__"], ["wandb.cli"])
    last = (program or "").replace("\\", "/").rpartition("/")
    return last[2] in ("wandb", "wb", "wandb.exe") or (program or "").endswith("wandb/__main__.py")


def _started_at(internals: Mapping[str, Any]) -> float | None:
    second = internals.get("start_time")
    if isinstance(second, int | float) and 0 < second < _LONGEST:
        return float(second)
    writers = internals.get("e")
    for writer in writers.values() if isinstance(writers, dict) else ():
        text = writer.get("startedAt") if isinstance(writer, dict) else None
        if isinstance(text, str):
            try:
                return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
            except (ValueError, OverflowError):
                continue
    return None


def _branch(point: Any) -> Branch | None:
    if not isinstance(point, dict):
        return None
    run_id, step = point.get("run_id"), point.get("step")
    if not isinstance(run_id, str) or isinstance(step, bool) or not isinstance(step, int | float):
        return None
    return Branch(run_id, float(step))
