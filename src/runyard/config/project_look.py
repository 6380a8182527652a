"""A project's folder, looked at: what it would be run with, and what it needs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from runyard.config.command_file import find_command_file
from runyard.config.job_script import ScriptReader, take_agents_from_nodes
from runyard.config.project_text import SCRIPTS_FOLDER
from runyard.reading.documents import DocumentError, read_document

_TRAINERS = ("train.py", "main.py", "run.py", "trainer.py", "experiment.py")
_FOLDERS = ("", "src", "scripts", "bin")
# Folders that hold no job scripts and no sweep files, but many other files.
_PASSED_OVER = ("venv", "env", "node_modules", "data", "datasets", "wandb", "outputs", "logs",
                "runs", "checkpoints", "results", "__pycache__", "build", "dist")  # fmt: skip
_MOST_FOLDERS, _DEEPEST = 200, 3
_SHELL_SCRIPTS = (".sh", ".bash")
_SWEEPS = ("sweep.yaml", "sweep.yml", "sweeper.yml", "sweeper.yaml")
_MOST_ENTRIES = 2000
_TRAINS = re.compile(r"train|wandb agent", re.IGNORECASE)
_MOST_FILES = 200  # A folder full of data is no place to open every file.
_MOST_BYTES = 200_000


@dataclass
class Look:
    """What was found, by the paths of runyard.yaml, each with where it was found."""

    settings: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    """Other programs that it could be."""

    def take(self, path: str, value: Any, reason: str) -> None:
        """What was found first stays."""
        if path not in self.settings:
            self.settings[path] = value
            self.reasons[path] = reason


def look(folder: Path, scripts: ScriptReader) -> Look:
    """What the files of a project say about how to run it. `scripts` reads its job scripts."""
    project = Look()
    _sweep(folder, project)
    _job_scripts(folder, scripts, project)
    _command(folder, project)
    _environment(folder, project)
    if not {"command", "command_file", "sweep"} & set(project.settings):
        project.notes.append("no program was found: write command: or sweep: before you submit")
    return project


def _job_scripts(folder: Path, reader: ScriptReader, look: Look) -> None:
    scripts = [
        file
        for file in _files_below(folder, (*_SHELL_SCRIPTS, *reader.endings))
        if reader.header.search(_text(file))
    ]
    # What trains is what a cluster is for; a project has scripts for its data as well.
    scripts.sort(key=lambda file: not _TRAINS.search(f"{file.name} {_text(file)}"))
    for script in scripts[:1]:
        name = str(script.relative_to(folder))
        read = reader.read(_text(script))
        _place_worker(read.settings, name, look)
        _place_program(read.settings, script, folder, look)
        _place_starter(read.settings, name, folder, look)
        for path, value in read.settings.items():
            look.take(path, value, name)
        look.notes += [f"{name}: {note}" for note in read.notes]
    if len(scripts) > 1:
        names = ", ".join(str(script.relative_to(folder)) for script in scripts[1:4])
        first = scripts[0].relative_to(folder)
        look.notes.append(f"{first} was translated, of several job scripts ({names})")


def _place_worker(settings: dict[str, Any], name: str, look: Look) -> None:
    """A sweep that `wandb agent` works on is on W&B's server, and not on ours."""
    sweep_id = settings.pop("sweep_id", None)
    if sweep_id is None:
        return
    if "sweep" in look.settings:
        mend = f"`runyard submit` makes a new one of {look.settings['sweep']}"
    else:
        mend = "write sweep: and the file of which it was made"
    look.notes.append(f"{name}: the sweep {sweep_id} is on another server; {mend}")


def _place_program(settings: dict[str, Any], script: Path, folder: Path, look: Look) -> None:
    """The program as it is seen from the project's folder: a script may be started beside it."""
    words = str(settings.get("command", "")).split(" ")
    place = next((n for n, word in enumerate(words) if word.endswith((".py", ".sh"))), None)
    if place is None or (folder / words[place]).is_file() or "$" in words[place]:
        return
    beside = script.parent / words[place]
    if beside.is_file() and folder in beside.resolve().parents:
        words[place] = str(beside.resolve().relative_to(folder.resolve()))
        settings["command"] = " ".join(words)
    else:
        look.notes.append(f"{script.name}: its program {words[place]} is not in {folder}")


def _place_starter(settings: dict[str, Any], name: str, folder: Path, look: Look) -> None:
    """A program that makes a sweep and starts agents on the job's nodes does what we do."""
    programs = [word for word in str(settings.get("command", "")).split() if word.endswith(".py")]
    if "sweep" not in look.settings or not programs or not (folder / programs[0]).is_file():
        return
    if re.search(r"\bwandb\.sweep\(", _text(folder / programs[0])):
        del settings["command"]
        take_agents_from_nodes(settings, in_each_task=True)
        look.notes.append(
            f"{name}: {programs[0]} makes a sweep and starts its agents; `runyard submit` does so "
            f"with {look.settings['sweep']}"
        )


def _command(folder: Path, look: Look) -> None:
    usual = find_command_file((folder, folder / SCRIPTS_FOLDER))
    if usual is not None and "command" not in look.settings:
        name = str(usual.relative_to(folder))
        look.take("command_file", name, name)
        return
    programs = [
        str(Path(below) / name)
        for below in _FOLDERS
        for name in _TRAINERS
        if (folder / below / name).is_file()
    ]
    programs += [
        file.name
        for file in _files(folder, ("*.py",))
        if file.name not in programs and _starts_a_run(_text(file))
    ]
    if "sweep" in look.settings and "command" not in look.settings:
        return  # The sweep's own file says the program.
    if programs:
        look.take("command", f"python {programs[0]}", programs[0])
        look.others = [f"python {name}" for name in programs[1:4]]


def _starts_a_run(text: str) -> bool:
    return "wandb.init(" in text or ("__main__" in text and "train" in text)


def _sweep(folder: Path, look: Look) -> None:
    files = _files_below(folder, (".yaml", ".yml"))
    sweeps: list[str] = []
    for file in sorted(files, key=lambda file: file.name not in _SWEEPS):
        try:
            data = read_document(_text(file)).data
        except DocumentError:
            continue
        if isinstance(data, dict) and "parameters" in data and "method" in data:
            sweeps.append(str(file.relative_to(folder)))
    if sweeps:
        look.take("sweep", sweeps[0], sweeps[0])
    if len(sweeps) > 1:
        look.notes.append(f"{sweeps[0]} is the sweep, of several ({', '.join(sweeps[1:4])})")


def _environment(folder: Path, look: Look) -> None:
    """The kind that the project's lock files mean. The first that fits counts."""
    if "environment.kind" in look.settings:
        return
    for names, kind in (
        (("uv.lock",), "uv"),
        (("pixi.lock", "pixi.toml"), "pixi"),
        (("environment.yml", "environment.yaml"), "conda"),
        (("requirements.txt", "Pipfile", "pyproject.toml"), "venv"),
    ):
        file = next((folder / name for name in names if (folder / name).is_file()), None)
        if file is None:
            continue
        look.take("environment.kind", kind, file.name)
        if kind == "conda":
            name = re.search(r"^name:\s*(\S+)", _text(file), re.MULTILINE)
            look.take("environment.name", name[1] if name else folder.name, file.name)
        existing = next(
            (name for name in (".venv", "venv") if (folder / name / "bin").is_dir()), None
        )
        if kind == "venv" and existing:
            look.take("environment.path", existing, existing)
        else:
            look.take("environment.build", True, file.name)
        return
    image = next(iter(_files(folder, ("*.sif",))), None)
    if image is not None:
        look.take("environment.kind", "apptainer", image.name)
        look.take("environment.image", image.name, image.name)


def _files(folder: Path, patterns: Iterable[str]) -> list[Path]:
    files = [file for pattern in patterns for file in sorted(folder.glob(pattern))]
    return [file for file in files if file.is_file()][:_MOST_FILES]


def _files_below(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    """In the folder and in those below it, the nearest first."""
    files: list[Path] = []
    level = [folder]
    for _ in range(_DEEPEST + 1):
        entries = [entry for place in level for entry in _entries(place)]
        files += [entry for entry in entries if entry.name.endswith(endings) and entry.is_file()]
        level = [
            entry
            for entry in entries
            if entry.is_dir()
            and not entry.is_symlink()
            and not entry.name.startswith(".")
            and entry.name not in _PASSED_OVER
        ][:_MOST_FOLDERS]
    return files[:_MOST_FILES]


def _entries(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return sorted(folder / entry.name for entry in islice(entries, _MOST_ENTRIES))
    except OSError:
        return []


def _text(file: Path) -> str:
    try:
        with file.open("rb") as content:
            return content.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
