"""What a sweep file and the command line ask for together, checked before anything is made."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.cli.output import say
from runyard.cli.parser import nearest
from runyard.cli.run import project_name
from runyard.errors import NotFoundError, UsageError
from runyard.search.documents import Document, DocumentError, read_document
from runyard.search.problems import Problem
from runyard.search.sweep import KEYS, WANDB_METHODS, Sweep, read_sweep

_SUFFIXES = (".yaml", ".yml", ".json")
_MOST_PROBLEMS = 8


@dataclass(frozen=True)
class Plan:
    """A sweep to be made."""

    file: Path
    config: str | dict[str, Any]
    """The file's own text, or its data where the command line changes something."""
    sweep: Sweep
    folder: Path
    """Where the programs run."""
    project: str | None
    entity: str | None
    name: str | None
    seed: int | None

    @property
    def size(self) -> int | None:
        """How many trials it will have; None: it has no end of its own."""
        seeds = max(1, len(self.sweep.options.seeds))
        size = self.sweep.space.size if self.sweep.method == "grid" else None
        whole = None if size is None else size * seeds
        known = [one for one in (whole, self.sweep.run_cap) if one is not None]
        return min(known, default=None)


def looks_like_file(words: str) -> bool:
    """Whether an argument means a file rather than a sweep that is there already."""
    return Path(words).exists() or words.endswith(_SUFFIXES)


def make_plan(args: argparse.Namespace) -> Plan:
    file = Path(args.sweep)
    document, text = _read_document(file)
    changed = _changed(document.data, args)
    data = document.data if changed is None else changed
    sweep, problems = read_sweep(data)
    if sweep is None:
        raise _bad_sweep(file, document, [problem for problem in problems if problem.is_error])
    for problem in problems:
        say(f"{_place(file, document, problem)}: {problem.message}; {problem.mend}")
    folder = _working_folder(file, sweep)
    return Plan(
        file=file,
        config=text if changed is None else changed,
        sweep=sweep,
        folder=folder,
        project=args.project
        or os.environ.get("WANDB_PROJECT")
        or (None if sweep.project else project_name(folder)),
        entity=args.entity or os.environ.get("WANDB_ENTITY"),
        name=args.name,
        seed=args.seed,
    )


def _read_document(file: Path) -> tuple[Document, str]:
    if file.is_dir():
        inside = next((one for one in sorted(file.iterdir()) if one.suffix in _SUFFIXES), None)
        raise UsageError(
            f"{file} is a folder",
            mend=f"runyard sweep {inside}" if inside else "name the sweep file in it",
        )
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise _no_file(file) from error
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(f"cannot read {file}", said=error) from error
    try:
        return read_document(text), text
    except DocumentError as error:
        where = f"{file}:{error.line}" if error.line else str(file)
        raise UsageError(
            f"{where}: this is not YAML", said=error, mend="mend that line, then try again"
        ) from error


def _no_file(file: Path) -> NotFoundError:
    folder = file.parent
    there = (
        [one.name for one in folder.iterdir() if one.suffix in _SUFFIXES] if folder.is_dir() else []
    )
    guess = nearest(file.name, there)
    mend = "write one: docs/sweeps.md shows how, and W&B's own sweep files work as they are"
    if guess or len(there) == 1:
        mend = f"did you mean {folder / (guess or there[0])}?"
    return NotFoundError(f"there is no file {file}", mend=mend)


def _bad_sweep(file: Path, document: Document, problems: list[Problem]) -> UsageError:
    lines = [
        f"{_place(file, document, problem)}: {problem.message}; {problem.mend}"
        for problem in problems[:_MOST_PROBLEMS]
    ]
    left = len(problems) - len(lines)
    more = [f"... and {left} more"] if left > 0 else []
    if len(problems) == 1:
        (problem,) = problems
        return UsageError(
            f"{_place(file, document, problem)}: {problem.message}", mend=problem.mend
        )
    return UsageError(
        f"{file} is not a sweep yet; nothing was made", said="\n  ".join(["", *lines, *more])
    )


def _place(file: Path, document: Document, problem: Problem) -> str:
    line = document.line_of(problem.path)
    name = ".".join(str(step) for step in problem.path)
    return f"{file}:{line}" + (f": {name}" if name else "") if line else f"{file}: {name}"


def _changed(data: Any, args: argparse.Namespace) -> dict[str, Any] | None:
    """The file's data with what the command line says; None if it says nothing of it."""
    if not isinstance(data, dict) or not (args.method or args.run_cap or args.set):
        return None
    changed = _deep_copy(data)
    if args.method in WANDB_METHODS:
        changed["method"] = args.method
        if isinstance(changed.get("runyard"), dict):
            changed["runyard"].pop("method", None)
    elif args.method:
        changed.setdefault("runyard", {})["method"] = args.method
    if args.run_cap:
        changed["run_cap"] = args.run_cap
    for setting in args.set:
        _put(changed, setting)
    return changed


def _put(data: dict[str, Any], setting: str) -> None:
    name, sign, text = setting.partition("=")
    if not sign or not name:
        raise UsageError(f"--set {setting!r} is not NAME=VALUE", mend="--set lr=0.1")
    try:
        value = read_document(text).data
    except DocumentError as error:
        raise UsageError(f"--set {setting}: the value is not YAML", said=error) from error
    path = name.split(".")
    if path[0] not in KEYS:
        # A parameter: a value fixes it, a list is searched.
        form = value if isinstance(value, dict) else None
        data.setdefault("parameters", {})[name] = form or (
            {"values": value} if isinstance(value, list) else {"value": value}
        )
        return
    for step in path[:-1]:
        data = data.setdefault(step, {})
        if not isinstance(data, dict):
            raise UsageError(f"--set {setting}: {step} holds no names in the sweep file")
    data[path[-1]] = value


def _deep_copy(data: dict[str, Any]) -> dict[str, Any]:
    import copy

    return copy.deepcopy(data)


def _working_folder(file: Path, sweep: Sweep) -> Path:
    """Where the program is: here, as W&B has it, or else beside the sweep file."""
    here, beside = Path.cwd(), file.resolve().parent
    needs_program = sweep.command is None or "${program}" in sweep.command
    if not needs_program:
        return here
    if sweep.program is None:
        raise UsageError(
            f"{file} names no program, and its command needs one",
            mend="add a line: program: train.py",
        )
    for folder in (here, beside):
        if (folder / sweep.program).is_file():
            return folder
    if sweep.command is not None and shutil.which(sweep.program):
        return here
    there = [one.name for one in here.iterdir() if one.is_file()]
    guess = nearest(Path(sweep.program).name, there)
    raise NotFoundError(
        f"{file} names the program {sweep.program}, which is neither in {here} nor beside the file",
        mend=f"did you mean {guess}?" if guess else "mend its `program:` line; nothing was made",
    )


def shown_command(words: list[str]) -> str:
    return shlex.join(words)
