"""Options that say how many programs run at a time, and where."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from runyard.cli.letters import spelled
from runyard.cli.parser import positive
from runyard.client.sweeps import Sweep


@dataclass(frozen=True)
class Slots:
    """As they were asked for; None where nothing was said."""

    count: int | None = None
    per_gpu: int | str | None = None
    gpus: str | None = None
    mps: str | None = None

    def words(self) -> list[str]:
        """For the agent."""
        told = (
            ("--slots", self.count),
            ("--per-gpu", self.per_gpu),
            ("--gpus", self.gpus),
            ("--mps", self.mps),
        )
        given = [(option, str(value)) for option, value in told if value is not None]
        return [word for pair in given for word in pair]

    def of_sweep(self, sweep: Sweep) -> Slots:
        """Where nothing is said of GPUs here, what the sweep's file says counts."""
        said = sweep["config"].get("runyard", {}).get("slots_per_gpu")
        if said is None or self.per_gpu is not None or self.count is not None:
            return self
        return Slots(self.count, said, self.gpus, self.mps)

    def __str__(self) -> str:
        if self.per_gpu is not None:
            most = "" if self.count is None else f", at most {self.count}"
            return f"{self.per_gpu} at a time on each GPU{most}"
        if self.gpus is not None and self.count is None:
            return "one at a time on each GPU"
        return f"{self.count or 1} at a time"


def add_slot_arguments(parser: argparse.ArgumentParser, what: str = "trials") -> None:
    parser.add_argument(*spelled("--slots"), type=positive, metavar="N",
                        help=f"{what} at a time on this machine (default 1; with --per-gpu, "
                        "at most so many)")  # fmt: skip
    parser.add_argument("--per-gpu", type=per_gpu, metavar="K|auto",
                        help="so many share each GPU; auto finds out how many")  # fmt: skip
    parser.add_argument("--mps", choices=("auto", "on", "off"),
                        help="NVIDIA's MPS for programs that share a GPU (default auto: where "
                        "it can be had)")  # fmt: skip


def read_slots(args: argparse.Namespace) -> Slots:
    """How many GPUs is an option of the cluster too; here it is so many of those that are here."""
    number = getattr(args, "request:resources.gpus", None)
    gpus = None if number is None else f"auto:{number.value}"
    return Slots(args.slots, args.per_gpu, gpus, args.mps)


def per_gpu(text: str) -> int | str:
    """For `type=`."""
    return text if text == "auto" else positive(text)
