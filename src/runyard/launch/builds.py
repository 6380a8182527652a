"""How an environment is built from a project's files: which file, which steps, under which name.

Pure: `plan_build` takes what the files hold and gives a script. The name has a hash of all that the
result depends on, so a changed lock makes a new environment, and the old one stays for the jobs
that use it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.errors import ConfigError
from runyard.launch.containers import CONTAINERS
from runyard.launch.requirement_files import from_pipfile, from_pipfile_lock, from_pyproject
from runyard.launch.shell_words import module_lines, quote

if TYPE_CHECKING:
    from runyard.clusters.profile import Profile
    from runyard.config.request import Environment

MARKER = ".runyard-built.json"
_KEY = 12
# Which files say it, the best first.
_FILES = {
    "venv": ("Pipfile", "requirements.txt", "pyproject.toml"),
    "uv": ("uv.lock", "requirements.txt", "pyproject.toml"),
    "conda": ("conda-lock.txt", "conda-linux-64.lock", "environment.yml", "environment.yaml"),
    "pixi": ("pixi.lock",),
}
# What else changes the result; read where it is there.
_BESIDE = {"Pipfile": ("Pipfile.lock",), "uv.lock": ("pyproject.toml",),
           "pixi.lock": ("pixi.toml", "pyproject.toml")}  # fmt: skip


@dataclass(frozen=True)
class Build:
    """One environment to be built."""

    kind: str
    source: str
    """The file that it is made of, as the user knows it."""
    folder: Path
    """Where it will be."""
    script: str
    """Lines for sh."""
    wanted: str | None = None
    """What goes to `FOLDER.txt` before the script runs."""
    inside: bool = False
    """Whether each job builds it for itself, on its node's own disk."""

    @property
    def marker(self) -> Path:
        """Written last: what has none is half done, and made anew."""
        return self.folder.with_name(f"{self.folder.name}{MARKER}")

    @property
    def wanted_file(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.txt")


def files_for(kind: str) -> tuple[str, ...]:
    """The files of a project that matter for an environment of this kind."""
    main = _FILES.get(kind, ())
    return tuple(
        dict.fromkeys((*main, *(beside for name in main for beside in _BESIDE.get(name, ()))))
    )


def plan_build(
    environment: Environment,
    profile: Profile,
    *,
    name: str,
    project: Path,
    files: Mapping[str, str],
    into: Path,
    conda: str | None = None,
) -> Build:
    """`files`: the contents of those that are there; `into`: the folder of all environments."""
    kind = environment.kind
    if kind in CONTAINERS:
        return _plan_pull(environment, profile, into)
    source = next((file for file in _FILES.get(kind, ()) if file in files), None)
    if source is None:
        known = " or ".join(_FILES.get(kind, ())) or "nothing"
        raise ConfigError(
            f"there is nothing to build an environment of kind {kind} from in {project}",
            mend=f"it is made of {known}",
        )
    site = profile.software.wheels == "site"
    wanted = _wanted(kind, source, files, site=site)
    modules = (*profile.script.modules, *environment.modules)
    parts = [kind, source, str(site), environment.name or "", *modules, wanted or ""]
    parts += profile.software.conda_channels if kind == "conda" else ()
    parts += [files[file] for file in (source, *_BESIDE.get(source, ())) if file in files]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_KEY]
    plain = "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in name)
    folder = into / f"{plain}-{kind}-{key}"
    steps = _STEPS[kind](_Task(folder, project, source, site, conda, environment.name, profile))
    lines = ["set -e", *module_lines(modules), *steps]
    inside = kind == "venv" and profile.software.build_where == "inside"
    return Build(kind, source, folder, "\n".join(lines) + "\n", wanted, inside)


def _wanted(kind: str, source: str, files: Mapping[str, str], *, site: bool) -> str | None:
    if source == "Pipfile":
        if "Pipfile.lock" in files and not site:
            return from_pipfile_lock(files["Pipfile.lock"], "Pipfile.lock")
        return from_pipfile(files[source], source)
    if source == "pyproject.toml":
        return from_pyproject(files[source], source)
    if source == "requirements.txt" and kind == "venv" and site:
        return "\n".join(map(_unpinned, files[source].splitlines())) + "\n"
    return None


def _unpinned(line: str) -> str:
    """`torch==2.1.0 ; python_version > "3"` without the version: the site's may be another."""
    bare, comment, rest = line.partition(" #")
    name, pinned, version = bare.partition("==")
    if not pinned or "@" in name or name.lstrip().startswith("-"):
        return line
    _, marked, markers = version.partition(";")
    return f"{name.rstrip()}{' ;' + markers if marked else ''}{comment}{rest}"


@dataclass(frozen=True)
class _Task:
    folder: Path
    project: Path
    source: str
    site: bool
    conda: str | None
    name: str | None
    profile: Profile

    @property
    def requirements(self) -> str:
        own = self.folder.with_name(f"{self.folder.name}.txt")
        return quote(self.project / self.source if self._is_plain else own)

    @property
    def _is_plain(self) -> bool:
        return self.source == "requirements.txt" and not self.site


def _venv_steps(task: _Task) -> list[str]:
    folder = quote(task.folder)
    pip = f"{folder}/bin/python -m pip --disable-pip-version-check install"
    if task.site:
        return [
            f"virtualenv --no-download {folder}",
            f"{pip} --no-index --upgrade pip",
            f"{pip} --no-index -r {task.requirements}",
        ]
    return [f"python3 -m venv {folder}", f"{pip} -r {task.requirements}"]


def _uv_steps(task: _Task) -> list[str]:
    folder = quote(task.folder)
    if task.source == "uv.lock":
        return [
            f"cd {quote(task.project)}",
            f"UV_PROJECT_ENVIRONMENT={folder} uv sync --frozen --no-install-project",
        ]
    site = " --no-index" if task.site else ""
    return [
        f"uv venv {folder}",
        f"uv pip install{site} --python {folder}/bin/python -r {task.requirements}",
    ]


def _conda_steps(task: _Task) -> list[str]:
    program = _conda_program(task.conda)
    folder, file = quote(task.folder), quote(task.project / task.source)
    # For files that name none: Anaconda's own, the default of some installations, may be blocked.
    channels = f"export CONDA_CHANNELS={quote(','.join(task.profile.software.conda_channels))}"
    is_list = not task.source.endswith((".yml", ".yaml"))
    if is_list or program.endswith("micromamba"):
        return [channels, f"{program} create --yes --prefix {folder} --file {file}"]
    return [channels, f"{program} env create --prefix {folder} --file {file}"]


def _conda_program(conda: str | None) -> str:
    if conda is None:
        raise ConfigError(
            "there is no conda here: neither on the path nor in a folder of the home folder",
            mend="install Miniforge (conda-forge), or say where it is: --env-path ~/miniforge3",
        )
    return quote(conda) if conda.endswith("micromamba") else f"{quote(conda)}/bin/conda"


def _pixi_steps(task: _Task) -> list[str]:
    named = f" --environment {quote(task.name)}" if task.name else ""
    # pixi keeps it in the project; the folder of ours only says that it was done.
    return [
        f"pixi install --frozen --manifest-path {quote(task.project)}{named}",
        f"mkdir -p {quote(task.folder)}",
    ]


_STEPS: Mapping[str, Callable[[_Task], list[str]]] = {
    "venv": _venv_steps,
    "uv": _uv_steps,
    "conda": _conda_steps,
    "pixi": _pixi_steps,
}


def _plan_pull(environment: Environment, profile: Profile, into: Path) -> Build:
    kind, image = CONTAINERS[environment.kind], environment.image
    if image is None:
        raise ConfigError(
            f"the environment is of kind {environment.kind}, and has no image",
            mend="environment: {kind: apptainer, image: docker://python:3.12}",
        )
    key = hashlib.sha256(f"{kind.name}\0{image}".encode()).hexdigest()[:_KEY]
    plain = "".join(letter if letter.isalnum() else "_" for letter in image)[-40:]
    folder = into / f"{plain}-{key}.{'sqsh' if kind.name == 'pyxis' else 'sif'}"
    module = profile.containers.module
    words = profile.containers.pull or " ".join(kind.pull)
    step = words.replace("{image}", quote(image)).replace("{file}", quote(folder))
    lines = ["set -e", *(module_lines([module]) if module else ()), step]
    return Build(kind.name, image, folder, "\n".join(lines) + "\n")
