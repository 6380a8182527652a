"""Groups of options that several commands have, and what they say: project, tracking, slots."""

from __future__ import annotations

import argparse

from runyard.actions.sweeping.slots import Slots
from runyard.actions.tracking import ProjectOptions
from runyard.cli.parser import add, count, positive
from runyard.cli.resource_flags import given_flags


def add_tracking(parser: argparse.ArgumentParser) -> None:
    add(parser, "--tracking WHERE", "where wandb logs: embedded (runyard's own server, the "
        "default), cloud (W&B's), or the URL of any W&B server")  # fmt: skip
    add(parser, "--key NAME", "with another server: the key's name in keys.json")


def add_result_arguments(parser: argparse.ArgumentParser) -> None:
    """What makes a run good, and what becomes of one that fails."""
    add(parser, "--retries N", "run one that fails up to N times more", type=count)
    add(parser, "--metric NAME", "what `runyard show --best` ranks by")
    add(parser, "--goal", "whether less or more is better (default: minimize)",
        choices=("minimize", "maximize"), default="minimize")  # fmt: skip


def project_options(args: argparse.Namespace) -> ProjectOptions:
    """What a command line says of the project; a command need not have all of these options."""
    names = ("project", "entity", "tracking", "key")
    return ProjectOptions(given_flags(args), **{name: getattr(args, name, None) for name in names})


def add_slot_arguments(parser: argparse.ArgumentParser, what: str = "trials") -> None:
    text = f"{what} at a time on this machine (default 1; with --per-gpu, at most so many)"
    add(parser, "-j --slots N", text, type=positive)
    add(parser, "--per-gpu K|auto", "so many share each GPU; auto finds out how many", type=per_gpu)
    add(parser, "--mps", "NVIDIA's MPS for programs that share a GPU (default auto: where it can "
        "be had)", choices=("auto", "on", "off"))  # fmt: skip


def add_warm_argument(parser: argparse._ActionsContainer) -> None:
    add(parser, "--warm MODULES", "import these once (torch,transformers) and fork each program of "
        "Python from there", type=lambda text: tuple(text.split(",")))  # fmt: skip


def read_slots(args: argparse.Namespace) -> Slots:
    """How many GPUs is an option of the cluster too; here it is so many of those that are here."""
    number = getattr(args, "request:resources.gpus", None)
    gpus = None if number is None else f"auto:{number.value}"
    return Slots(args.slots, getattr(args, "per_gpu", None), gpus, getattr(args, "mps", None))


def per_gpu(text: str) -> int | str:
    """For `type=`."""
    return text if text == "auto" else positive(text)
