"""A cluster that behaves like the one of a `runyard doctor --share` file.

Its nodes are alike and few, they are always on, and every account may use every partition.
"""

from __future__ import annotations

from collections.abc import Iterator

from runyard.schedulers.slurm.facts import Partition, SlurmFacts
from runyard.schedulers.slurm.values import clock
from tests.slurm.config import ClusterSpec

_MOST_NODES = 2


def spec_of(facts: SlurmFacts) -> ClusterSpec:
    """Of its nodes, those with the most GPUs."""
    nodes = max(facts.nodes, key=lambda group: sum(group.gpus.values()))
    kind, gpus = max(nodes.gpus.items(), key=lambda gpu: gpu[1], default=("fake", 0))
    return ClusterSpec(
        nodes=min(nodes.nodes, _MOST_NODES),
        cpus=nodes.cpus,
        memory_mb=nodes.memory_mb,
        gpus=gpus,
        gpu_type=kind,
        partitions=tuple(" ".join(_rules(one)) for one in facts.partitions),
        array_size=facts.array_size or 1001,
        counts_memory=facts.counts_memory is not False,
        accounting=bool(facts.has_accounting),
    )


def _rules(partition: Partition) -> Iterator[str]:
    yield partition.name
    yield f"Default={'YES' if partition.is_default else 'NO'}"
    yield f"State={'UP' if partition.is_up else 'DOWN'}"
    yield f"MaxTime={clock(partition.longest) if partition.longest else 'INFINITE'}"
    if partition.most_nodes:
        yield f"MaxNodes={partition.most_nodes}"
    if partition.memory_per_cpu:
        yield f"DefMemPerCPU={partition.memory_per_cpu}"
    if partition.is_exclusive:
        yield "OverSubscribe=EXCLUSIVE"
