"""`runyard farm --split`: task files of so many lines each, or of as many as fit a GPU together."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.actions.owner import find_owner
from runyard.cli.connect import server
from runyard.cli.output import print_json, say
from runyard.cli.parser import positive
from runyard.cli.project_options import project_options
from runyard.errors import ConfigError

if TYPE_CHECKING:
    from runyard.config.request import Request
    from runyard.config.task_list import TaskList
    from runyard.gauge.placing import Card

FIT = "fit"
_GB = 10**9


def split_size(text: str) -> int | str:
    """For `type=`."""
    return text if text == FIT else positive(text)


def split(args: argparse.Namespace, found: TaskList) -> int:
    from runyard.config.task_files import parts_of, write_task_files

    folder = Path(args.to or "tasks")
    lines = {number: task.command_line for number, task in found.tasks.items()}
    parts: list[Sequence[str]]
    if args.split == FIT:
        cards, total = _place(args, found)
        parts = [[lines[number] for number in card.tasks] for card in cards]
        notes = [f"{card.memory / _GB:.1f} of {total / _GB:.1f} GB" for card in cards]
    else:
        parts, notes = parts_of(list(lines.values()), args.split), []
    files = write_task_files(parts, folder)
    if args.json:
        print_json([str(file) for file in files])
        return 0
    say(f"{len(lines)} command lines in {len(files)} files: {files[0]} to {files[-1].name}")
    if not notes:
        say(f"each runs with:  runyard farm {files[0]} -j {args.split}")
    for file, part, note in zip(files, parts, notes, strict=False):
        say(f"{note}:  runyard farm {shlex.quote(str(file))} --per-gpu {len(part)}")
    return 0


def _place(args: argparse.Namespace, found: TaskList) -> tuple[list[Card], int]:
    """The lines that share each GPU, by what was measured of their kinds; bytes of a GPU."""
    from runyard.cli.resource_flags import given_flags
    from runyard.config.project_file import read_project
    from runyard.gauge.kinds import kind_of_line
    from runyard.gauge.placing import place

    request = read_project(Path.cwd(), given_flags(args))
    total = _memory_of_gpu(request)
    owner = find_owner(project_options(args), Path.cwd())
    known: dict[str, int] = {}
    for kept in server().figures.known(owner.project, entity=owner.entity)["figures"]:
        if kept["figures"].get("vram_peak"):
            known.setdefault(kept["kind"], int(kept["figures"]["vram_peak"]))  # The newest.
    peaks: dict[int, int] = {}
    for number, task in found.tasks.items():
        kind = kind_of_line(task.command_line, request.gauge.by)
        if kind not in known:
            raise ConfigError(
                f"line {number}: how much GPU memory {kind} needs is not known",
                mend=f"measure it, here or with --on slurm:  runyard gauge -- {task.command_line}",
            )
        if known[kind] > total:
            raise ConfigError(
                f"line {number}: {kind} took {known[kind] / _GB:.1f} GB of GPU memory, and a GPU "
                f"has {total / _GB:.1f} GB",
                mend="write a larger one as gpu_type",
            )
        peaks[number] = known[kind]
    most = args.per_gpu if isinstance(args.per_gpu, int) else None
    return place(peaks, total, request.gauge.gpu_memory_margin, most), total


def _memory_of_gpu(request: Request) -> int:
    """Of the type that is asked for; else of the GPU that is here."""
    gpus, kind = request.profile.gpus, request.resources.gpu_type or ""
    model = gpus.types.get(kind) or gpus.slices.get(kind)
    if model is not None and model.memory_gb is not None:
        return round(model.memory_gb * _GB)
    from runyard.gauge.measuring import cards_here

    here = cards_here()
    if not here:
        raise ConfigError(
            "how much memory a GPU has is not known: none is here, and no type of the cluster's "
            "profile is asked for",
            mend="write gpu_type under resources, or --gpu-type",
        )
    return min(card.total for card in here)
