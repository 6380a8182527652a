"""What the cluster has: nodes, CPUs and GPUs by partition, how many are free, and the limits.

  runyard clusters partitions           those that you can see
  runyard clusters partitions --json    for scripts

FREE/ALL: nodes count as free when nothing runs on them; CPUs and GPUs when they could be had now.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from runyard.cli.output import Columns, duration, print_list
from runyard.cli.parser import flag
from runyard.reading.units import memory_text
from runyard.schedulers.choice import cluster
from runyard.schedulers.partitions import Partition


def add_arguments(parser: argparse.ArgumentParser) -> None:
    flag(parser, "--json", "print JSON")


def run(args: argparse.Namespace) -> int:
    partitions = cluster().partitions()
    shown = [asdict(partition) for partition in partitions] if args.json else partitions
    print_list(_COLUMNS, shown, "Slurm shows no partition", as_json=args.json)
    return 0


def _gpus(partition: Partition) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in partition.gpus.items()) or "-"


def _memory(partition: Partition) -> str:
    low, high = (memory_text(part << 20) for part in partition.memory)
    return low if low == high else f"{low}-{high}"


def _note(partition: Partition) -> str:
    notes: list[Any] = ["default"] if partition.is_default else []
    notes += [partition.state.lower()] if partition.state != "UP" else []
    notes += [partition.denied] if partition.denied else []
    notes += [f"at most {partition.most_nodes} nodes"] if partition.most_nodes is not None else []
    return ", ".join(notes)


_COLUMNS: Columns = {
    "PARTITION": lambda partition: partition.name,
    "NODES": lambda partition: str(partition.nodes),
    "CPUS": lambda partition: str(partition.cpus),
    "GPUS": _gpus,
    "MEMORY": _memory,
    "LONGEST": lambda partition: "-" if partition.longest is None else duration(partition.longest),
    "NOTE": _note,
}
