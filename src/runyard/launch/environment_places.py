"""Where an environment is on this machine: looked up before `wrap`, which is pure."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.launch.environments import EnvironmentPlaces

if TYPE_CHECKING:
    from runyard.clusters.profile import Profile
    from runyard.config.request import Environment
    from runyard.schedulers.script_words import ScriptWords

_VENV_FOLDERS = (".venv", "venv", "env", "ENV")
# S0.23: by default in the home folder. Miniforge first: Anaconda's own channels are blocked at
# some sites.
_CONDA_FOLDERS = (
    "miniforge3", "mambaforge", "miniforge", "miniconda3", "miniconda", "anaconda3", "conda",
)  # fmt: skip
_PIXI_FILES = ("pixi.toml", "pyproject.toml")
_IMAGE_FILES = (".sif", ".simg", ".sqfs", ".sqsh")
# These run images that lie in files and folders; the others know images by name.
_OF_FILES = ("apptainer", "charliecloud")


def find_environment_places(
    environment: Environment,
    profile: Profile,
    *,
    project: Path,
    work: Path,
    words: ScriptWords,
    gpus: bool = False,
    mounts: tuple[str, ...] = (),
    environ: Mapping[str, str] = os.environ,
) -> EnvironmentPlaces:
    """What `wrap` has to know. What is not there is None, and `wrap` says what to do about it."""
    place: str | None = None
    conda: str | None = None
    named = _absolute(environment.path, project, environ)
    if environment.kind in ("venv", "uv"):
        place = named or _find_venv(project, environ)
    elif environment.kind == "conda":
        conda = _find_conda(named, profile, environ)
        place = _find_conda_environment(environment.name, named, conda, environ)
    elif environment.kind == "pixi":
        place = _find_pixi(named, project)
    elif environment.image is not None:
        place = find_image(environment.kind, environment.image, project, environ)
    return EnvironmentPlaces(project, work, words, place, conda, gpus=gpus, mounts=mounts)


def find_image(kind: str, image: str, project: Path, environ: Mapping[str, str]) -> str:
    """A file or folder by its whole path; the name of an image in a registry as it is."""
    path = _absolute(image, project, environ)
    assert path is not None
    if image.startswith(("/", ".", "~", "$")) or image.endswith(_IMAGE_FILES):
        return path
    if kind in _OF_FILES:
        # `docker://python:3.12`, `python:3.12`; a plain word is a file of the project.
        return image if ":" in image else path
    return path if Path(path).exists() else image


def _absolute(text: str | None, project: Path, environ: Mapping[str, str]) -> str | None:
    if text is None:
        return None
    expanded = re.sub(
        r"\$\{(\w+)\}|\$(\w+)",
        lambda match: environ.get(match[1] or match[2], match[0]),
        text,
    )
    home = environ.get("HOME", "~")
    if expanded == "~" or expanded.startswith("~/"):
        expanded = home + expanded[1:]
    return os.path.normpath(project / expanded)


def _find_venv(project: Path, environ: Mapping[str, str]) -> str | None:
    for name in _VENV_FOLDERS:
        if (project / name / "bin" / "activate").exists():
            return str(project / name)
    return environ.get("VIRTUAL_ENV") or None


def _find_conda(named: str | None, profile: Profile, environ: Mapping[str, str]) -> str | None:
    for root in _conda_roots(named, profile, environ):
        if (root / "etc" / "profile.d" / "conda.sh").exists():
            return str(root)
    return shutil.which("micromamba", path=environ.get("PATH"))


def _conda_roots(named: str | None, profile: Profile, environ: Mapping[str, str]) -> Iterator[Path]:
    if named is not None:
        yield Path(named)
        # A prefix, ROOT/envs/NAME, says where its root is.
        yield Path(named).parent.parent
    home = Path(environ.get("HOME", "/"))
    root = _absolute(profile.software.conda_root, home, environ)
    if root is not None:
        yield Path(root)
    if environ.get("CONDA_EXE"):
        yield Path(environ["CONDA_EXE"]).parent.parent
    for variable in ("MAMBA_ROOT_PREFIX", "CONDA_ROOT"):
        if environ.get(variable):
            yield Path(environ[variable])
    program = shutil.which("conda", path=environ.get("PATH"))
    if program is not None:
        yield Path(program).resolve().parent.parent
    yield from (home / name for name in _CONDA_FOLDERS)
    yield from (Path("/opt") / name for name in _CONDA_FOLDERS)


def _find_conda_environment(
    name: str | None, named: str | None, conda: str | None, environ: Mapping[str, str]
) -> str | None:
    """Its folder: a prefix that was named, or where conda keeps environments of this name."""
    if named is not None and named != conda:
        return named
    if name is None or conda is None:
        return None
    root = environ.get("MAMBA_ROOT_PREFIX") if conda.endswith("micromamba") else conda
    places = [Path(root) / "envs"] if root else []
    places.append(Path(environ.get("HOME", "/")) / ".conda" / "envs")
    if name == "base":
        return conda
    for place in places:
        if (place / name / "conda-meta").is_dir():
            return str(place / name)
    return str(places[0] / name)


def _find_pixi(named: str | None, project: Path) -> str:
    folder = Path(named) if named is not None else project
    if folder.is_file():
        return str(folder)
    for name in _PIXI_FILES:
        file = folder / name
        if file.exists() and (name != "pyproject.toml" or "[tool.pixi" in file.read_text()):
            return str(file)
    return str(folder / "pixi.toml")
