"""Options that say how many programs run at a time, and where."""

from __future__ import annotations

import argparse

from runyard.actions.sweeping.slots import Slots
from runyard.cli.letters import spelled
from runyard.cli.parser import positive


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
    return Slots(args.slots, getattr(args, "per_gpu", None), gpus, getattr(args, "mps", None))


def per_gpu(text: str) -> int | str:
    """For `type=`."""
    return text if text == "auto" else positive(text)
