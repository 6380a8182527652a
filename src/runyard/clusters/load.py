"""Loads profiles from their files: those of runyard, of a group and of a user.

A profile inherits from another one with `inherits: NAME` (default: `generic`). Mappings are merged
key by key, everything else is replaced, and an empty key removes what was inherited. An option that
a profile makes mandatory inherits no default. A file in an earlier folder replaces a profile of the
same name, and may inherit from it.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from runyard.clusters.profile import Identity, Profile
from runyard.clusters.soundness import contradictions
from runyard.errors import ConfigError, NotFoundError
from runyard.reading.documents import Document
from runyard.reading.fields import Fields
from runyard.reading.files import read_mapping, refusal
from runyard.reading.problems import Findings, Problem, closest
from runyard.reading.problems import Path as Place
from runyard.reading.records import merge, read_record, without_empty

SHIPPED = Path(__file__).parent / "profiles"
GENERIC = "generic"
FOLDERS = "RUNYARD_CLUSTERS"
_INHERITS, _IDENTITY = "inherits", "identity"


@dataclass(frozen=True)
class ProfileFile:
    """One file, checked alone."""

    name: str
    path: Path
    document: Document

    @property
    def data(self) -> Mapping[str, Any]:
        return self.document.data or {}

    @property
    def inherits(self) -> str | None:
        named = self.data.get(_INHERITS)
        if named is not None:
            return str(named)
        return None if self.name == GENERIC and self.path.parent == SHIPPED else GENERIC

    def where(self, place: Place) -> str:
        return f"{self.path}:{self.document.line_of(place) or 1}"


def profile_folders(environ: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Where profiles are, in the order of the search: $RUNYARD_CLUSTERS, the user's, runyard's."""
    named = [part for part in environ.get(FOLDERS, "").split(os.pathsep) if part]
    config = environ.get("XDG_CONFIG_HOME") or "~/.config"
    return (
        *(Path(part).expanduser() for part in named),
        Path(config).expanduser() / "runyard" / "clusters",
        SHIPPED,
    )


def profile_names(folders: Sequence[Path]) -> list[str]:
    """The names of all profiles."""
    names = (file.stem for folder in folders for file in _files(folder))
    return sorted(set(names), key=lambda name: (name != GENERIC, name))


def load_profile(
    name: str, *, folders: Sequence[Path] | None = None, overrides: Mapping[str, Any] | None = None
) -> Profile:
    """The profile of that name, with what it inherits; ConfigError lists all mistakes.

    `overrides` are a project's own changes, which are already checked.
    """
    chain = _chain(name, tuple(folders if folders is not None else profile_folders()))
    data: Mapping[str, Any] = {}
    for file in chain:
        data = _inherit(data, {key: value for key, value in file.data.items() if key != _INHERITS})
    if overrides:
        data = _inherit(data, overrides)
    findings = Findings()
    profile = read_record(Profile, Fields(without_empty(data), (), findings))
    profile = replace(profile, name=name, files=tuple(str(file.path) for file in chain))
    problems = [*findings, *contradictions(profile)]
    if problems:
        raise _refusal(name, chain, problems)
    return profile


def _inherit(data: Mapping[str, Any], own: Mapping[str, Any]) -> Mapping[str, Any]:
    """The inherited data, with the profile's own data over it. An option that the profile makes
    mandatory inherits no default: the user has to set it."""
    merged = merge(data, own)
    submission = own.get("submission") or {}
    defaults = submission.get("defaults") or {}
    demanded = [name for name in submission.get("mandatory") or {} if name not in defaults]
    return merge(merged, {"submission": {"defaults": dict.fromkeys(demanded)}})


@dataclass(frozen=True)
class Known:
    """The data by which a profile is recognised, and its number of files."""

    name: str
    identity: Identity
    depth: int


def known_profiles(folders: Sequence[Path]) -> list[Known]:
    """Every profile, but only the part that is needed to recognise it: most commands use one."""
    read = functools.cache(_read_identity)
    profiles = []
    for name in profile_names(folders):
        chain = _chain(name, tuple(folders), read)
        data: Mapping[str, Any] = {}
        for file in chain:
            data = merge(data, file.data.get(_IDENTITY) or {})
        identity = read_record(Identity, Fields(without_empty(data), (), Findings()))
        profiles.append(Known(name, identity, len(chain)))
    return profiles


def _chain(
    name: str, folders: tuple[Path, ...], read: Callable[[str, Path], ProfileFile] | None = None
) -> list[ProfileFile]:
    """The files of a profile, the most general first."""
    chain: list[ProfileFile] = []
    wanted: str | None = name
    asked_by: ProfileFile | None = None
    while wanted is not None:
        seen = {file.path for file in chain}
        candidates = [file for file in _candidates(wanted, folders) if file not in seen]
        if not candidates:
            raise _missing(wanted, folders, asked_by, is_loop=bool(_candidates(wanted, folders)))
        asked_by = (read or _read)(wanted, candidates[0])
        chain.append(asked_by)
        wanted = asked_by.inherits
    return chain[::-1]


def _candidates(name: str, folders: Iterable[Path]) -> list[Path]:
    return [file for folder in folders for file in _files(folder) if file.stem == name]


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(
            file for file in folder.iterdir()
            if file.suffix in (".yaml", ".yml") and not file.name.startswith(".")
        )  # fmt: skip
    except OSError:
        return []


def _read_identity(name: str, path: Path) -> ProfileFile:
    return _read(name, path, part=_identity_part)


def _identity_part(text: str) -> str:
    """A profile's text with only the sections that identify the cluster; other lines are empty, so
    line numbers stay. The whole text if it is not written section by section."""
    lines, is_kept = [], False
    for line in text.splitlines():
        if line[:1] not in ("", " ", "\t", "#"):
            key = re.match(r"(\w+):", line)
            if key is None:
                return text
            is_kept = key[1] in (_INHERITS, _IDENTITY)
        lines.append(line if is_kept else "")
    return "\n".join(lines)


def _read(name: str, path: Path, part: Callable[[str], str] | None = None) -> ProfileFile:
    document = read_mapping(
        path,
        str(path),
        noun="profile",
        mend="write sections such as `limits:`; docs/clusters.md lists them",
        title=f"the profile {path}",
        part=part,
    )
    file = ProfileFile(name, path, document)
    findings = Findings()
    own = {key: value for key, value in file.data.items() if key != _INHERITS}
    read_record(Profile, Fields(without_empty(own), (), findings))
    if findings.has_errors:
        raise _refusal(name, [file], list(findings))
    return file


def _missing(
    name: str, folders: Sequence[Path], asked_by: ProfileFile | None, is_loop: bool
) -> ConfigError | NotFoundError:
    known = profile_names(folders)
    near = closest(name, known)
    if asked_by is not None:
        where = asked_by.where((_INHERITS,))
        if is_loop:
            return ConfigError(
                f"{where}: {asked_by.name} inherits {name}, which inherits it in turn",
                mend="let one of them inherit something else",
            )
        return ConfigError(
            f"{where}: there is no profile {name} to inherit",
            mend=f"did you mean {near}?" if near else f"there are: {', '.join(known)}",
        )
    return NotFoundError(
        f"there is no profile {name!r}",
        said=f"looked in {', '.join(str(folder) for folder in folders)}",
        mend=f"did you mean {near}?"
        if near
        else f"`runyard clusters` lists them: {', '.join(known)}",
    )


def _refusal(name: str, chain: Sequence[ProfileFile], problems: Sequence[Problem]) -> ConfigError:
    return refusal(f"the profile {name}", problems, lambda problem: _where(chain, problem.path))


def _where(chain: Sequence[ProfileFile], place: Place) -> str:
    """The file nearest to the user that sets this value. If it is an inherited file, the file that
    inherits from it comes first."""
    own = chain[-1]
    for depth in range(len(place), 0, -1):
        for file in reversed(chain):
            if _says(file.data, place[:depth]):
                return file.where(place) if file is own else f"{own.path} with {file.where(place)}"
    return str(chain[-1].path)


def _says(data: Any, place: Place) -> bool:
    for step in place:
        if not isinstance(data, Mapping) or step not in data:
            return False
        data = data[step]
    return True
