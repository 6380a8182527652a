"""One Python environment per client version, made on demand and kept in this checkout."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from tests.wandb_clients.versions import requirements

FOLDER = (Path(__file__).parents[2] / ".cache" / "wandb-clients").resolve()
_LONGEST_INSTALL = 600


class MissingClient(Exception):
    """This version of the client cannot be had here; the message is one line."""


def ensure_environment(version: str) -> Path:
    """The Python that has this version of the client; installs it where it is not there yet."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    folder = FOLDER / version
    python = folder / "bin" / "python"
    stamp = folder / "installed"
    wanted = "\n".join([sys.version, str(folder), *requirements(version)])
    # Two test runs in one checkout take turns; the kernel lets go of a dead one's lock.
    with (FOLDER / f"{version}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _read(stamp) == wanted and python.exists():
            return python
        # Whatever is there without its stamp is half of an installation.
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, symlinks=True, with_pip=False)
        _install(python, version)
        stamp.write_text(wanted)
    return python


def _install(python: Path, version: str) -> None:
    words = ["--quiet", "--disable-pip-version-check", *requirements(version)]
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", *words]
    environment = {"PIP_CACHE_DIR": str(FOLDER.parent / "pip"), **os.environ}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_LONGEST_INSTALL
        )
    except subprocess.TimeoutExpired as error:
        raise MissingClient(
            f"wandb {version} is missing: pip took longer than {_LONGEST_INSTALL} s"
        ) from error
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise MissingClient(
            f"wandb {version} is missing, and pip could not install it: "
            f"{said[-1] if said else f'exit code {done.returncode}'}"
        )
    tried = subprocess.run([python, "-c", "import wandb"], capture_output=True, text=True)
    if tried.returncode:
        raise MissingClient(
            f"wandb {version} does not work with Python {sys.version.split()[0]}: "
            f"{tried.stderr.strip().splitlines()[-1]}"
        )


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except FileNotFoundError:
        return None
