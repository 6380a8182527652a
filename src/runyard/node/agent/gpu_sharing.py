"""Before programs share a GPU: MPS where it can be had, and a clear word where it cannot."""

from __future__ import annotations

import os

from runyard.node.devices.gpus import refusing
from runyard.node.devices.mps import NoMps, start_mps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runyard.node.agent.occupancy import Occupancy
    from runyard.node.agent.work import Work
    from runyard.node.devices.layout import Layout


class NotShared(Exception):
    """MPS was demanded and cannot be had."""


def share_gpus(layout: Layout, occupancy: Occupancy, mps: str, work: Work) -> None:
    """`mps`: on, off, or auto, which is on where it can be had."""
    gpus = layout.gpus
    why = "MPS is off"
    if mps != "off":
        try:
            if gpus.variable != "CUDA_VISIBLE_DEVICES":
                raise NoMps("it is NVIDIA's, and these GPUs are not")
            occupancy.mps = start_mps(gpus.names, os.environ, work.keeper)
            work.report("MPS runs: programs on one GPU compute at the same time")
            return
        except NoMps as error:
            why = f"without MPS ({error})"
            if mps == "on":
                raise NotShared(f"MPS was asked for, and cannot be had: {error}") from error
    exclusive = refusing(gpus.names)
    for gpu in exclusive:
        occupancy.hold_at_one(gpu)
        work.report(f"GPU {gpu} lets one program in at a time (exclusive mode), and {why}")
    if len(exclusive) < len(gpus.names):
        work.report(f"{why}: programs on one GPU take turns")
