"""What the cluster has: nodes, CPUs and GPUs by partition, how many are free, and the limits.

  runyard clusters partitions           those that you can see
  runyard clusters partitions --json    for scripts

FREE/ALL: nodes count as free when nothing runs on them; CPUs and GPUs when they could be had now.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from runyard.cli.output import duration, print_json, print_table, say
from runyard.cli.watching.job_view import memory_text
from runyard.schedulers.choice import cluster
from runyard.schedulers.partitions import Partition


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    found = cluster().partitions()
    if args.json:
        print_json([asdict(one) for one in found])
        return 0
    if not found:
        say("Slurm shows no partition")
        return 0
    print_table(
        ("PARTITION", "NODES", "CPUS", "GPUS", "MEMORY", "LONGEST", "NOTE"),
        (
            (
                one.name,
                str(one.nodes),
                str(one.cpus),
                _gpus(one),
                _memory(one),
                "-" if one.longest is None else duration(one.longest),
                _note(one),
            )
            for one in found
        ),
    )
    return 0


def _gpus(one: Partition) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in one.gpus.items()) or "-"


def _memory(one: Partition) -> str:
    low, high = (memory_text(part << 20) for part in one.memory)
    return low if low == high else f"{low}-{high}"


def _note(one: Partition) -> str:
    notes: list[Any] = ["default"] if one.is_default else []
    notes += [one.state.lower()] if one.state != "UP" else []
    notes += [one.denied] if one.denied else []
    notes += [f"at most {one.most_nodes} nodes"] if one.most_nodes is not None else []
    return ", ".join(notes)
