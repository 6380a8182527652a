"""A project's folder, looked at: what it would be run with, and what it needs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runyard.config.sbatch_header import translate
from runyard.reading.documents import DocumentError, read_document

_TRAINERS = ("train.py", "main.py", "run.py", "trainer.py", "experiment.py")
_FOLDERS = ("", "src", "scripts", "bin")
_SCRIPTS = ("*.sh", "*.sbatch", "*.slurm", "*.job", "*.batch")
_SWEEPS = ("sweep.yaml", "sweep.yml", "sweeper.yml", "sweeper.yaml")
_COMMAND_FILES = ("experiment_configurations.txt", "experiment_configuration.txt")
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


def look(folder: Path) -> Look:
    """What the files of a project say about how to run it."""
    found = Look()
    _job_scripts(folder, found)
    _command(folder, found)
    _sweep(folder, found)
    _environment(folder, found)
    return found


def _job_scripts(folder: Path, found: Look) -> None:
    scripts = [
        file
        for file in _files(folder, _SCRIPTS)
        if re.search(r"^#SBATCH\s", _text(file), re.MULTILINE)
    ]
    for script in scripts[:1]:
        read = translate(_text(script))
        for path, value in read.settings.items():
            found.take(path, value, script.name)
        found.notes += [f"{script.name}: {note}" for note in read.notes]
    if len(scripts) > 1:
        names = ", ".join(script.name for script in scripts[1:4])
        found.notes.append(f"{scripts[0].name} was translated, of several job scripts ({names})")


def _command(folder: Path, found: Look) -> None:
    for name in _COMMAND_FILES:
        if (folder / name).is_file() and "command" not in found.settings:
            found.take("command_file", name, name)
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
    if programs:
        found.take("command", f"python {programs[0]}", programs[0])
        found.others = [f"python {name}" for name in programs[1:4]]


def _starts_a_run(text: str) -> bool:
    return "wandb.init(" in text or ("__main__" in text and "train" in text)


def _sweep(folder: Path, found: Look) -> None:
    named = [folder / name for name in _SWEEPS]
    for file in [*named, *_files(folder, ("*.yaml", "*.yml"))]:
        if not file.is_file():
            continue
        try:
            data = read_document(_text(file)).data
        except DocumentError:
            continue
        if isinstance(data, dict) and "parameters" in data and "method" in data:
            found.take("sweep", file.name, file.name)
            return


def _environment(folder: Path, found: Look) -> None:
    """The kind that the project's lock files mean. The first that fits counts."""
    if "environment.kind" in found.settings:
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
        found.take("environment.kind", kind, file.name)
        if kind == "conda":
            name = re.search(r"^name:\s*(\S+)", _text(file), re.MULTILINE)
            found.take("environment.name", name[1] if name else folder.name, file.name)
        existing = next((one for one in (".venv", "venv") if (folder / one / "bin").is_dir()), None)
        if kind == "venv" and existing:
            found.take("environment.path", existing, existing)
        else:
            found.take("environment.build", True, file.name)
        return
    image = next(iter(_files(folder, ("*.sif",))), None)
    if image is not None:
        found.take("environment.kind", "apptainer", image.name)
        found.take("environment.image", image.name, image.name)


def _files(folder: Path, patterns: Iterable[str]) -> list[Path]:
    found = [file for pattern in patterns for file in sorted(folder.glob(pattern))]
    return [file for file in found if file.is_file()][:_MOST_FILES]


def _text(file: Path) -> str:
    try:
        with file.open("rb") as content:
            return content.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
