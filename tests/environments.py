"""Python environments that tests need besides their own: made on demand, kept in this checkout."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import pytest

CACHE = (Path(__file__).parents[1] / ".cache").resolve()
_LONGEST_INSTALL = 600


class Missing(Exception):
    """What is wanted cannot be had here; the message is one line."""


def ensure(folder: Path, wanted: Sequence[str], install: Callable[[Path], None]) -> Path:
    """The Python of an environment that holds what is `wanted`; `install` fills a new one."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    python = folder / "bin" / "python"
    stamp = folder / "installed"
    text = "\n".join([sys.version, str(folder), *wanted])
    # Two test runs in one checkout take turns; the kernel lets go of a dead one's lock.
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _read(stamp) == text and python.exists():
            start_lightly(folder)
            return python
        # Whatever is there without its stamp is half of an installation.
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, symlinks=True, with_pip=False)
        install(python)
        start_lightly(folder)
        stamp.write_text(text)
    return python


def start_lightly(folder: Path) -> None:
    """As in the environment that runs the tests; where `LIGHT_STARTS` is set."""
    for packages in folder.glob("lib/python3*/site-packages"):
        for name in ("light_starts.pth", "light_starts.py"):
            shutil.copy(Path(__file__).with_name(name), packages)


def pip_install(python: Path, what: str, words: Sequence[str]) -> None:
    """Install packages into an environment; Missing, with pip's own words, if that fails."""
    if _uv_installs(python, words):
        return
    # Compiled when imported: most modules never are.
    fixed = ["--quiet", "--disable-pip-version-check", "--no-compile"]
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", *fixed, *words]
    environment = {"PIP_CACHE_DIR": str(CACHE / "pip"), **os.environ}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_LONGEST_INSTALL
        )
    except subprocess.TimeoutExpired as error:
        raise Missing(f"{what} is missing: pip took longer than {_LONGEST_INSTALL} s") from error
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise Missing(
            f"{what} is missing, and pip could not install it: "
            f"{said[-1] if said else f'exit code {done.returncode}'}"
        )


def _uv_installs(python: Path, words: Sequence[str]) -> bool:
    """uv takes a tenth of pip's time. What it cannot get, pip may: it has settings of its own."""
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists() or os.environ.get("PIP_NO_INDEX"):
        return False
    # pip's settings may name a small build of torch; the registry's brings gigabytes for GPUs.
    if any(word.startswith("torch") for word in words):
        return False
    places = {"UV_FIND_LINKS": "PIP_FIND_LINKS", "UV_DEFAULT_INDEX": "PIP_INDEX_URL"}
    environment = {
        "UV_CACHE_DIR": str(CACHE / "uv"),
        **{theirs: os.environ[ours] for theirs, ours in places.items() if ours in os.environ},
        **os.environ,
    }
    command = [str(uv), "pip", "install", "--quiet", "--python", str(python), *words]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, timeout=_LONGEST_INSTALL, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def skip_or_fail(reason: str) -> NoReturn:
    """Where something cannot be had: a skip, or in CI a failure."""
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except FileNotFoundError:
        return None
