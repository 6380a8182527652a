"""runyard.yaml as it is written: where it is, checked key by key, and the line of each setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from runyard.config.project_shape import ProjectFile
from runyard.file_trust import find_marked, is_open_to_all
from runyard.reading.documents import Document
from runyard.reading.fields import Fields
from runyard.reading.files import read_mapping, refusal
from runyard.reading.problems import Findings, Problem
from runyard.reading.problems import Path as Place
from runyard.reading.records import merge, read_record, without_empty

FILE_NAME = "runyard.yaml"
SCRIPTS_FOLDER = "hpc_files"
# Two ways to say one thing: what is said nearer to the user takes the other away.
ONE_OF = (
    (("command",), ("command_file",)),
    (("resources", "memory"), ("resources", "memory_per_gpu")),
)

# It is read by every command.
_LARGEST_FILE = 256 << 10
# Lists of words, which are the text that was typed: `1e5` stays `1e5`.
_TYPED = tuple(
    (*above, *place)
    for above in ((), ("clusters", "*"))
    for place in (("command",), ("rehearse", "*", "add"))
)

# What some keys were probably meant to be, where that is known better than by spelling.
_KNOWN_MISTAKES = {
    "seed": "the seed belongs to your program's own arguments: put it into command, or use "
    "`runyard repeat --seeds`",
    "seeds": "`runyard repeat --seeds 5` runs a command with several seeds; a sweep file has "
    "runyard: {seeds: 5}",
    "api_key": "no key belongs into this file: `runyard login` stores it where jobs find it",
    "wandb_api_key": "no key belongs into this file: `runyard login` stores it where jobs find it",
    "program": "write command: python train.py",
    "script": "write command: python train.py",
    "container": "write it under environment: {kind: apptainer, image: FILE.sif}",
    "image": "write it under environment",
    "modules": "write it under environment",
    "account": "write it under resources",
    "gpus": "write it under resources",
    "time": "write it under resources",
    "partition": "write it under resources",
    "data": "write it under staging",
    "entity": "write it under tracking",
    "project": "write it under tracking",
    "mem": "write memory",
    "walltime": "write time",
}


@dataclass(frozen=True)
class ProjectText:
    """The file, read and checked; without one, an empty one."""

    path: Path | None
    document: Document

    @property
    def data(self) -> Mapping[str, Any]:
        return self.document.data or {}

    def where(self, place: Place) -> str:
        return f"{self.shown}:{self.document.line_of(place) or 1}"

    @property
    def shown(self) -> str:
        return FILE_NAME if self.path is None else _shown(self.path)

    @property
    def folder(self) -> Path | None:
        return self.path.parent if self.path else None


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def find_project_file(folder: Path) -> Path | None:
    """The file in a folder or in the nearest one above it."""
    paths = (place / FILE_NAME for place in find_marked(folder.resolve(), FILE_NAME))
    return next((path for path in paths if path.is_file()), None)


def find_passed_over(folder: Path) -> Path | None:
    """Where `find_project_file` finds none: a file above that others can have left."""
    here = folder.resolve()
    return next(
        (place / FILE_NAME for place in here.parents if (place / FILE_NAME).is_file()), None
    )


def find_root(folder: Path) -> Path:
    """The project's root where there is no file: the repository, or the folder itself. Older submit
    scripts lie in a folder of their own inside the project."""
    here = folder.resolve()
    is_inside = here.name == SCRIPTS_FOLDER and not is_open_to_all(here.parent)
    return next(find_marked(here, ".git"), here.parent if is_inside else here)


def read_project_text(path: Path | None) -> ProjectText:
    if path is None:
        return ProjectText(None, Document({}, None))
    document = read_mapping(
        path,
        _shown(path),
        noun="mapping",
        mend="write keys such as `command:`; docs/runyard-file.md lists them",
        largest=_LARGEST_FILE,
        typed=_TYPED,
    )
    file = ProjectText(path, document)
    findings = Findings()
    read_record(ProjectFile, Fields(without_empty(file.data), (), findings))
    problems = sorted(
        map(_better, findings), key=lambda problem: document.line_of(problem.path) or 0
    )
    if problems:
        raise refusal(file.shown, problems, lambda problem: file.where(problem.path))
    return file


def _better(problem: Problem) -> Problem:
    key = str(problem.path[-1]) if problem.path else ""
    mend = _KNOWN_MISTAKES.get(key)
    if mend is None or not problem.message.endswith("is not a key here"):
        return problem
    return replace(problem, mend=mend)


def for_cluster(
    file: ProjectText, clusters: Sequence[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The file's data for a cluster, and the line of each setting. `clusters` are the names that
    the cluster goes by, the most general first: each may have its part."""
    data = {key: value for key, value in file.data.items() if key not in ("clusters", "cluster")}
    origins = _origins(file, (), data)
    for name in clusters:
        part = (file.data.get("clusters") or {}).get(name) or {}
        for first, other in ONE_OF:
            for written, other_way in ((first, other), (other, first)):
                if _has(part, written) and not _has(part, other_way):
                    data = _without(data, other_way)
                    origins.pop(".".join(other_way), None)
        data = merge(data, part)
        origins |= _origins(file, ("clusters", name), part)
    return without_empty(data), origins


def _origins(file: ProjectText, above: Place, data: Mapping[str, Any]) -> dict[str, str]:
    return {".".join(map(str, place)): file.where((*above, *place)) for place in _leaves(data)}


def _has(data: Mapping[str, Any], path: Sequence[str]) -> bool:
    inner = data.get(path[0])
    if len(path) == 1:
        return inner is not None
    return isinstance(inner, Mapping) and inner.get(path[1]) is not None


def _without(data: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    return merge(data, {path[0]: None} if len(path) == 1 else {path[0]: {path[1]: None}})


def _leaves(data: Mapping[str, Any], above: Place = ()) -> list[Place]:
    leaves: list[Place] = []
    for key, value in data.items():
        place = (*above, key)
        is_deep = isinstance(value, Mapping) and len(place) == 1
        leaves += _leaves(value, place) if is_deep else [place]
    return leaves
