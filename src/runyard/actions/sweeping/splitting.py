"""Task files of so many lines each, or of as many as fit a GPU together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.actions.connect import open_server
from runyard.actions.events import Notify
from runyard.actions.owner import find_owner
from runyard.actions.tracking import ProjectOptions
from runyard.errors import ConfigError

if TYPE_CHECKING:
    from runyard.config.request import Request
    from runyard.config.task_list import TaskList
    from runyard.gauge.placing import Card

_GB = 10**9


@dataclass(frozen=True)
class SplitRequest:
    """A list of command lines, and into what it is split."""

    tasks: TaskList
    folder: Path
    """Where the files go."""
    size: int | None = None
    """Lines of a file; None: those whose programs fit a GPU together, as they were gauged."""
    most_on_gpu: int | None = None
    options: ProjectOptions = field(default_factory=ProjectOptions)


@dataclass(frozen=True)
class TaskFile:
    path: Path
    lines: int
    memory: str | None = None
    """Of the GPU, where that decided."""


def split_tasks(request: SplitRequest, notify: Notify) -> list[TaskFile]:
    from runyard.config.task_files import parts_of, write_task_files

    lines = {number: task.command_line for number, task in request.tasks.tasks.items()}
    parts: list[Sequence[str]]
    memory: list[str | None]
    if request.size is None:
        cards, total = _place(request, notify)
        parts = [[lines[number] for number in card.tasks] for card in cards]
        memory = [f"{card.memory / _GB:.1f} of {total / _GB:.1f} GB" for card in cards]
    else:
        parts = parts_of(list(lines.values()), request.size)
        memory = [None] * len(parts)
    files = write_task_files(parts, request.folder)
    return [
        TaskFile(file, len(part), note)
        for file, part, note in zip(files, parts, memory, strict=True)
    ]


def _place(request: SplitRequest, notify: Notify) -> tuple[list[Card], int]:
    """The lines that share each GPU, by what was measured of their kinds; bytes of a GPU."""
    from runyard.config.project_file import read_project
    from runyard.gauge.kinds import kind_of_line
    from runyard.gauge.placing import place

    options, here = request.options, Path.cwd()
    project = read_project(here, options.flags)
    total = _memory_of_gpu(project)
    owner = find_owner(options, here)
    known: dict[str, int] = {}
    measured = open_server(notify).figures.known(owner.project, entity=owner.entity)["figures"]
    for row in measured:
        if row["figures"].get("vram_peak"):
            known.setdefault(row["kind"], int(row["figures"]["vram_peak"]))  # The newest.
    peaks: dict[int, int] = {}
    for number, task in request.tasks.tasks.items():
        kind = kind_of_line(task.command_line, project.gauge.by)
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
    return place(peaks, total, project.gauge.gpu_memory_margin, request.most_on_gpu), total


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
