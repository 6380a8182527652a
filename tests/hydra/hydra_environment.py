"""Hydra, this checkout's launcher, and Hydra's own examples, as a test needs them."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.environments import CACHE, Missing, ensure, pip_install, skip_or_fail

ROOT = Path(__file__).parents[2]
PACKAGES = ("hydra-core>=1.3.2,<1.4", "cloudpickle>=3")
# Its requirements name an older Optuna than runyard's; it works with ours.
SWEEPER = "hydra-optuna-sweeper>=1.3,<1.4"
_REPOSITORY = os.environ.get("RUNYARD_HYDRA_REPOSITORY")


def hydra_python() -> Path:
    """The Python that has Hydra, and everything that this Python has."""

    def install(python: Path) -> None:
        (site,) = python.parents[1].glob("lib/python*/site-packages")
        (site / "beside.pth").write_text(sysconfig.get_path("purelib") + "\n")
        pip_install(python, "hydra", PACKAGES)
        pip_install(python, "hydra", ["--no-deps", SWEEPER])

    try:
        return ensure(CACHE / "hydra", [*PACKAGES, SWEEPER], install)
    except Missing as missing:
        skip_or_fail(str(missing))


def hydra_examples() -> Path:
    """A checkout of Hydra's repository, with its `examples` and the examples of its plugins."""
    if _REPOSITORY is None:
        pytest.skip(
            "RUNYARD_HYDRA_REPOSITORY=FOLDER: Hydra's own examples, of a checkout of v1.3.5"
        )
    return Path(_REPOSITORY)


def hydra_variables(**more: str) -> dict[str, str]:
    """The variables of a Hydra program under test: it finds this checkout's runyard and launcher;
    `python` is the one that has Hydra, and `runyard` the command of this environment."""
    python = hydra_python()
    environ = {**os.environ, **more}
    modules = [ROOT / "src", ROOT / "plugins" / "hydra", more.get("PYTHONPATH", "")]
    return {
        **environ,
        "PATH": f"{python.parent}:{Path(sys.executable).parent}:{environ['PATH']}",
        "PYTHONPATH": ":".join(str(place) for place in modules if place),
    }


def run_hydra(
    program: Path, *words: str, folder: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """A multirun with the launcher, to its end, whatever that is."""
    return subprocess.run(
        [str(hydra_python()), str(program), "--multirun", "hydra/launcher=runyard", *words],
        cwd=folder,
        env=hydra_variables(**variables),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
