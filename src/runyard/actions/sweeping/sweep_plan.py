"""What a sweep file and the command line ask for together, checked before anything is made."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runyard.actions.events import Notice, Notify
from runyard.actions.owner import Owner, find_owner
from runyard.actions.tracking import ProjectOptions
from runyard.config.overrides import Overrides
from runyard.config.sweep_file import SweepFile, read_sweep_file
from runyard.config.task_files import STANDARD_INPUT
from runyard.errors import ConfigError, NotFoundError, UsageError
from runyard.reading.problems import nearest
from runyard.search.sweep import Sweep

_SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True)
class SweepSource:
    """A sweep file, and what replaces parts of it."""

    file: str
    """Its path, or - for standard input."""
    overrides: Overrides = field(default_factory=Overrides)
    options: ProjectOptions = field(default_factory=ProjectOptions)
    needs_program: bool = True
    """Whether it is to be run from here."""
    text: str | None = None
    """What it would hold, where there is no file."""


@dataclass(frozen=True)
class Plan:
    """A sweep to be made."""

    source: str
    config: str | Mapping[str, Any]
    """The file's own text, or its data where the command line changes something."""
    sweep: Sweep
    folder: Path
    """Where the programs run."""
    owner: Owner

    @property
    def size(self) -> int | None:
        """How many trials it will have; None: it has no end of its own."""
        seeds = max(1, len(self.sweep.options.seeds))
        size = self.sweep.space.size if self.sweep.method == "grid" else None
        known = [size * seeds if size is not None else None, self.sweep.run_cap]
        return min((number for number in known if number is not None), default=None)


def looks_like_file(words: str) -> bool:
    """Whether an argument means a file rather than a sweep that is there already."""
    return words == STANDARD_INPUT or Path(words).exists() or words.endswith(_SUFFIXES)


def make_plan(source: SweepSource, notify: Notify) -> Plan:
    file = Path(source.file)
    if source.text is None and file.is_dir():
        inside = next((path for path in sorted(file.iterdir()) if path.suffix in _SUFFIXES), None)
        raise UsageError(
            f"{file} is a folder",
            mend=f"runyard sweep {inside}" if inside else "name the sweep file in it",
        )
    read = read_sweep_file(
        source.file, source.overrides, needs_program=source.needs_program, text=source.text
    )
    for warning in read.warnings:
        notify(Notice(warning))
    folder = _working_folder(read) if source.needs_program else Path.cwd()
    sweep = read.sweep
    is_as_written = source.overrides == Overrides()
    return Plan(
        source=read.source,
        config=read.text if is_as_written else read.data,
        sweep=sweep,
        folder=folder,
        owner=find_owner(source.options, folder, (sweep.project, sweep.entity)),
    )


def _working_folder(read: SweepFile) -> Path:
    """Where the program is: here, as W&B has it, or else beside the sweep file."""
    here, sweep = Path.cwd(), read.sweep
    beside = here if read.source == "standard input" else Path(read.source).resolve().parent
    if sweep.command is not None:
        _check_first_word(read, str(sweep.command[0]) if sweep.command else "", here)
        if not _runs_a_file(sweep.command):
            return here
    if sweep.program is None:
        raise ConfigError(
            f"{read.source} names no program, and its command needs one",
            mend="add a line: program: train.py",
        )
    for folder in (here, beside):
        if (folder / sweep.program).is_file():
            return folder
    wanted = Path(sweep.program)
    there = [
        path.name
        for folder in (here, beside)
        for path in folder.iterdir()
        if path.is_file() and path.suffix == wanted.suffix
    ]
    guess = nearest(wanted.name, there)
    raise NotFoundError(
        f"{read.source} names the program {sweep.program}, which is not in {here}"
        + ("" if beside == here else f", nor in {beside}"),
        mend=f"did you mean {guess}?" if guess else "mend its `program:` line; nothing was made",
    )


def _runs_a_file(command: Sequence[Any]) -> bool:
    """Whether `program` is a file's name in this command, and not a module's (`python -m`)."""
    words = [str(word) for word in command]
    if "${program}" not in words:
        return False
    place = words.index("${program}")
    return place == 0 or words[place - 1] != "-m"


def _check_first_word(read: SweepFile, word: str, folder: Path) -> None:
    if word.startswith("${") or shutil.which(word) or (folder / word).exists():
        return
    raise NotFoundError(
        f"{read.source}: the command begins with {word!r}, and there is no such program",
        mend="check its spelling, and that its environment is active; nothing was made",
    )
