"""What a cluster has, by partition (or queue): how much there is, how much is free, who may."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Count:
    free: int = 0
    total: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.free + other.free, self.total + other.total)

    def __str__(self) -> str:
        return f"{self.free}/{self.total}"


@dataclass(frozen=True)
class Partition:
    """One partition. `gpus` by type; memory of a node in MiB, the least and the most.

    `denied` says why you may not use it, where the scheduler tells.
    """

    name: str
    is_default: bool = False
    state: str = "UP"
    nodes: Count = field(default_factory=Count)
    """Free ones are wholly free."""
    cpus: Count = field(default_factory=Count)
    gpus: Mapping[str, Count] = field(default_factory=dict)
    memory: tuple[int, int] = (0, 0)
    longest: float | None = None
    usual: float | None = None
    most_nodes: int | None = None
    denied: str | None = None
