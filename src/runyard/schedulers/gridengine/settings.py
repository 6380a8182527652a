"""Grid Engine's words in profiles; like Slurm's `settings`, it imports no room."""

from __future__ import annotations

from dataclasses import dataclass

from runyard.reading.kinds import Text
from runyard.reading.records import setting


@dataclass(frozen=True)
class SiteNames:
    """What administrators choose: Grid Engine itself has no name for any of these."""

    cores: str = setting(
        Text("NAME"), "the parallel environment whose slots are all on one host", "smp"
    )
    memory: str = setting(Text("NAME"), "the resource that stands for memory", "h_vmem")
    gpu: str = setting(Text("NAME"), "the resource that stands for GPUs", "gpu")
