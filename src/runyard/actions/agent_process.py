"""An agent of a sweep as a process of this machine: its command, its folder, its start."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import runyard
from runyard.actions.slots import Slots
from runyard.home import locate

# Isolated and without site-packages: the agent needs neither, and starts in half the files.
_START = (
    "import sys; sys.path.insert(0, {0!r}); "
    "from runyard.node.agent.__main__ import main; sys.exit(main())"
)


@dataclass(frozen=True)
class AgentStarted:
    """An agent in the background."""

    pid: int
    log: Path
    """What it says."""


def agent_command(
    key: int,
    *,
    slots: Slots,
    count: int | None,
    folder: str,
    leash: int | None,
    quiet: bool,
    output: int | None = None,
    seconds: float | None = None,
    grace: float | None = None,
) -> list[str]:
    words = ["--sweep", str(key), *slots.words(), "--folder", folder]
    words += ["--leash", str(leash)] if leash is not None else []
    words += ["--output", str(output)] if output is not None else []
    words += ["--count", str(count)] if count is not None else []
    words += ["--time", str(seconds)] if seconds is not None else []
    words += ["--grace", str(grace)] if grace is not None else []
    words += ["--quiet"] if quiet else []
    return [*agent_start(), *words]


def agent_start() -> list[str]:
    source = str(Path(runyard.__file__).resolve().parent.parent)
    return [sys.executable, "-I", "-S", "-c", _START.format(source)]


def working_folder(folder: str | None) -> str:
    """Where a sweep's programs run: where it was made, or here, on a machine without that place."""
    return folder if folder is not None and Path(folder).is_dir() else str(Path.cwd())


def start_in_background(
    words: list[str], sweep: str, folder: str, variables: Mapping[str, str]
) -> AgentStarted:
    """An agent that outlives the terminal."""
    home = locate()
    log = home.path / "agents" / f"{sweep}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd=folder,
            env={**os.environ, **variables, "RUNYARD_HOME": str(home.path)},
        )
    process.returncode = 0  # Nobody waits for it: Python is not to warn of that.
    return AgentStarted(process.pid, log)
