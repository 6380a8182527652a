"""What the last job of a sweep asked for, for jobs that go on with its work."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

_RESOURCES = (
    "gpus", "gpu_type", "cpus", "memory", "time", "nodes", "tasks_per_node", "partition",
    "account", "qos", "constraint", "reservation",
)  # fmt: skip
KEPT = (*(f"resources.{name}" for name in _RESOURCES), "distributed")


def keep_asked(args: argparse.Namespace, asked: Mapping[str, Any]) -> None:
    """Put it among the options, where the command line says nothing else."""
    from runyard.config.flags import Given

    values = vars(args)
    for path in KEPT:
        if path == "resources.memory" and values.get("request:resources.memory_per_gpu"):
            continue  # Another way to say the same.
        value = asked.get(path.rpartition(".")[2])
        if values.get(f"request:{path}") is None and value is not None:
            values[f"request:{path}"] = Given(value, str(value))
    if asked.get("nodes") and not asked.get("distributed"):
        # Its program starts processes on these nodes by itself: they are no mistake.
        values.setdefault("request:resources.tasks_per_node", Given(1, "1"))
