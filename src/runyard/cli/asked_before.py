"""What the last job of a sweep asked for, for jobs that go on with its work."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

KEPT = (
    "gpus", "gpu_type", "cpus", "memory", "time", "nodes", "tasks_per_node", "partition",
    "account", "qos", "constraint", "reservation",
)  # fmt: skip


def keep_asked(args: argparse.Namespace, asked: Mapping[str, Any]) -> None:
    """Put it among the options, where the command line says nothing else."""
    from runyard.config.flags import Given

    values = vars(args)
    for name in KEPT:
        if values.get(f"request:resources.{name}") is None and asked.get(name) is not None:
            values[f"request:resources.{name}"] = Given(asked[name], str(asked[name]))
