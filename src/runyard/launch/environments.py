"""A program's environment in a job: the lines that activate it, what is started around it.

`wrap` is pure. What it needs to know of this machine comes in a `EnvironmentPlaces`, which
`environment_places` finds out; `environment_checks` looks whether it is all there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.errors import ConfigError
from runyard.launch.container_script import Box, Container
from runyard.launch.containers import CONTAINERS, container_header, container_launcher
from runyard.launch.shell_words import failing, module_lines, quote

if TYPE_CHECKING:
    from runyard.clusters.profile import Profile
    from runyard.config.request import Environment
    from runyard.schedulers.script_words import ScriptWords


@dataclass(frozen=True)
class Check:
    """Something that must be there when jobs begin: looked at before they are submitted."""

    kind: str
    """`file`, `folder`, `image`, `program`, `python` (one that works), `wandb` (in that one) or
    `wandb-inside` (an image; its subject is the words that run something there)."""
    what: str
    subject: str
    mend: str
    is_advice: bool = False


@dataclass(frozen=True)
class Wrapping:
    """What makes an environment of a program."""

    before: tuple[str, ...] = ()
    """Lines of the job's script, for bash and zsh, before anything is started."""
    launcher: tuple[str, ...] = ()
    """Words that the agent puts before the program's own."""
    header: tuple[str, ...] = ()
    """Options of the scheduler that the environment needs."""
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()
    """What the user should know of how it came about."""


@dataclass(frozen=True)
class EnvironmentPlaces:
    """What is known of the places around an environment before a job begins."""

    project: Path
    """The project's root: what relative paths start from."""
    work: Path
    """Where the programs run."""
    words: ScriptWords
    """The scheduler's, whose jobs it is for."""
    place: str | None = None
    """The environment itself: a folder, or an image. None where nothing was found."""
    conda: str | None = None
    """The root of a conda installation, or the program micromamba."""
    gpus: bool = False
    mounts: tuple[str, ...] = ()
    """Folders that a container's program needs besides those that it is told by variables."""


def wrap(environment: Environment, profile: Profile, places: EnvironmentPlaces) -> Wrapping:
    """What a job needs so that its programs run in this environment."""
    if environment.kind in CONTAINERS:
        return _wrap_container(environment, profile, places)
    return _KINDS[environment.kind](environment, profile, places)


def _none(_environment: Environment, _profile: Profile, _places: EnvironmentPlaces) -> Wrapping:
    return Wrapping()


def _modules(environment: Environment, profile: Profile, _places: EnvironmentPlaces) -> Wrapping:
    if not environment.modules and not profile.script.modules:
        raise ConfigError(
            "the environment is of kind modules, and no modules are named",
            mend="environment: {kind: modules, modules: [python/3.11]}, or --module python/3.11",
        )
    return Wrapping()


def _venv(environment: Environment, profile: Profile, places: EnvironmentPlaces) -> Wrapping:
    if environment.build and profile.software.build_where == "inside":
        return Wrapping(before=_inside_lines(places))
    if places.place is None:
        raise ConfigError(
            f"{places.project} has no virtual environment",
            mend="make one there (`python -m venv .venv`, or `uv sync`), name one with --env-path "
            "FOLDER, or let runyard build it: --build",
        )
    folder = places.place
    python = f"{folder}/bin/python"
    again = "`uv sync` makes it anew" if environment.kind == "uv" else "make it anew, or --build"
    return Wrapping(
        before=(failing(f". {quote(folder)}/bin/activate", f"cannot activate {folder}"),),
        checks=(
            Check("file", f"the virtual environment {folder}", f"{folder}/bin/activate", again),
            *_python_checks(python, again, environment.kind),
        ),
    )


def _inside_lines(places: EnvironmentPlaces) -> tuple[str, ...]:
    """Where a site wants environments on the node's own disk: built by each job for itself.

    The site's own wheels, nothing downloaded, and versions as they are there (S1.78).
    """
    disk = places.words.disk
    wanted = quote(places.place or str(places.project / "requirements.txt"))
    pip = "pip install --quiet --no-index"
    return (
        failing(
            f'virtualenv --no-download "${disk}/environment" >&2',
            "cannot make a virtual environment on the node's disk",
        ),
        failing(f'. "${disk}/environment/bin/activate"', "cannot activate it"),
        f"{pip} --upgrade pip >&2",
        failing(f"{pip} -r {wanted} >&2", f"the site's wheels do not have all of {wanted}"),
    )


def _conda(environment: Environment, _profile: Profile, places: EnvironmentPlaces) -> Wrapping:
    named = environment.name or places.place
    if named is None:
        raise ConfigError(
            "the environment is of kind conda, and has no name",
            mend="environment: {kind: conda, name: NAME}, or --env-name NAME",
        )
    if places.conda is None:
        raise ConfigError(
            "there is no conda here: neither on the path nor in a folder of the home folder",
            mend="install Miniforge (conda-forge), or say where it is: --env-path ~/miniforge3",
        )
    folder = places.place
    if places.conda.endswith("micromamba"):
        hook = f'hook="$({quote(places.conda)} shell hook --shell posix)" && eval "$hook"'
        words = f"{hook} && micromamba activate {quote(named)}"
        made = f"micromamba create -n {named} -f environment.yml"
    else:
        words = f". {quote(places.conda)}/etc/profile.d/conda.sh && conda activate {quote(named)}"
        made = f"conda env create -n {named} -f environment.yml"
    mend = f"`{made}` makes it; `conda env list` says what there is"
    checks: tuple[Check, ...] = ()
    if folder is not None:
        checks = (
            Check("folder", f"the conda environment {named}", f"{folder}/conda-meta", mend),
            *_python_checks(f"{folder}/bin/python", mend, "conda"),
        )
    return Wrapping(
        before=(failing(words, f"cannot activate the conda environment {named}"),), checks=checks
    )


def _pixi(environment: Environment, profile: Profile, places: EnvironmentPlaces) -> Wrapping:
    manifest = places.place or str(places.project / "pixi.toml")
    shell = "zsh" if profile.script.shell == "zsh" else "bash"
    words = f"pixi shell-hook --frozen --shell {shell} --manifest-path {quote(manifest)}"
    if environment.name:
        words += f" --environment {quote(environment.name)}"
    place = Path(manifest).parent / ".pixi" / "envs" / (environment.name or "default")
    mend = f"`pixi install` in {Path(manifest).parent} makes it, or --build"
    return Wrapping(
        before=(
            failing(f'hook="$({words})" && eval "$hook"', "pixi cannot activate its environment"),
        ),
        checks=(
            Check("program", "pixi", "pixi", "https://pixi.sh says how to install it"),
            Check("folder", f"the pixi environment {place}", str(place), mend),
            *_python_checks(f"{place}/bin/python", mend, "pixi"),
        ),
    )


def _python_checks(python: str, mend: str, kind: str) -> tuple[Check, Check]:
    adds = {"uv": "uv add wandb", "pixi": "pixi add --pypi wandb"}
    install = adds.get(kind, f"{python} -m pip install wandb")
    return (
        Check("python", f"its interpreter {python}", python, mend),
        Check("wandb", "wandb", python, f"programs that log need it: {install}", is_advice=True),
    )


_KINDS: Mapping[str, Callable[[Environment, Profile, EnvironmentPlaces], Wrapping]] = {
    "none": _none,
    "modules": _modules,
    "venv": _venv,
    "uv": _venv,
    "conda": _conda,
    "pixi": _pixi,
}


def _wandb_inside(kind: Container, image: str) -> Check:
    words = [*(word.replace("{image}", image) for word in kind.look)]
    return Check(
        "wandb-inside", "wandb", json.dumps([list(kind.programs), words]),
        "programs that log need it: add `pip install wandb` where the image is made",
        is_advice=True,
    )  # fmt: skip


def _wrap_container(
    environment: Environment, profile: Profile, places: EnvironmentPlaces
) -> Wrapping:
    kind = CONTAINERS[environment.kind]
    if environment.image is None:
        raise ConfigError(
            f"the environment is of kind {environment.kind}, and has no image",
            mend="environment: {kind: apptainer, image: image.sif}, or --container IMAGE",
        )
    image = places.place or environment.image
    box = Box(
        image=image,
        work=str(places.work),
        words=places.words,
        mounts=(*places.mounts, *profile.containers.mounts, *environment.mounts),
        variables=(
            *profile.containers.variables,
            *profile.script.variables,
            *profile.script.multi_node_variables,
            *environment.variables,
        ),
        workdir=environment.workdir,
        gpu_flag=profile.containers.gpu_flag if places.gpus else None,
    )
    module = profile.containers.module
    checks: list[Check] = []
    if not module:
        programs = "|".join(kind.programs)
        checks.append(Check("program", kind.programs[0], programs, kind.install))
    if image.startswith("/"):
        mend = "copy or build it there, or name another with --container IMAGE"
        checks.append(Check("image", f"the image {image}", image, mend))
    if kind.look and not environment.build:
        checks.append(_wandb_inside(kind, image))
    return Wrapping(
        before=module_lines([module]) if module else (),
        launcher=container_launcher(kind, box),
        header=container_header(kind, box),
        checks=tuple(checks),
    )
