"""One Python environment per client version."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.environments import CACHE, Missing, ensure, pip_install
from tests.wandb_clients.versions import requirements

FOLDER = CACHE / "wandb-clients"


class MissingClient(Missing):
    """This version of the client cannot be had here; the message is one line."""


def ensure_environment(version: str) -> Path:
    """The Python that has this version of the client; installs it where it is not there yet."""
    return ensure(FOLDER / version, requirements(version), lambda python: _install(python, version))


def ensure_optimizers(version: str) -> Path:
    """The same, with what `wandb sweep-scheduler` searches with."""
    wanted = (f"wandb[optuna,sweeps]=={version}", *requirements(version)[1:])
    return ensure(
        FOLDER / f"{version}-optimizers",
        wanted,
        lambda python: pip_install(python, f"wandb {version} with optimizers", wanted),
    )


def _install(python: Path, version: str) -> None:
    try:
        pip_install(python, f"wandb {version}", requirements(version))
    except Missing as missing:
        raise MissingClient(str(missing)) from missing
    tried = subprocess.run([python, "-c", "import wandb"], capture_output=True, text=True)
    if tried.returncode:
        raise MissingClient(
            f"wandb {version} does not work with Python {sys.version.split()[0]}: "
            f"{tried.stderr.strip().splitlines()[-1]}"
        )
