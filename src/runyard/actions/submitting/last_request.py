"""What the last job of a sweep asked for, for jobs that go on with its work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runyard.config.flags import Flags, flag

_RESOURCES = (
    "gpus", "gpu_type", "cpus", "memory", "time", "nodes", "tasks_per_node", "partition",
    "account", "qos", "constraint", "reservation",
)  # fmt: skip
KEPT = (*(f"resources.{name}" for name in _RESOURCES), "distributed")


def with_last_request(flags: Flags, last: Mapping[str, Any]) -> Flags:
    """The flags, and what the last job asked for where they say nothing."""
    merged = dict(flags.given)
    for path in KEPT:
        if path == "resources.memory" and "resources.memory_per_gpu" in merged:
            continue  # Another way to say the same.
        value = last.get(path.rpartition(".")[2])
        if path not in merged and value is not None:
            merged[path] = flag(path, [value])
    if last.get("nodes") and not last.get("distributed"):
        # Its program starts processes on these nodes by itself: they are no mistake.
        merged.setdefault("resources.tasks_per_node", flag("resources.tasks_per_node", [1]))
    return Flags(merged)
