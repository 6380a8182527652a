"""An agent of a sweep as a process of this machine: its command, its folder, its start."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from runyard.actions.sweeping.slots import Slots
from runyard.home import SOURCE, locate
from runyard.shapes.sweeps import Sweep

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


@dataclass(frozen=True)
class Limits:
    """When an agent ends although trials are left."""

    count: int | None = None
    """It has taken so many."""
    seconds: float | None = None
    grace: float | None = None
    """How long before its end programs are told to save."""


NO_LIMITS = Limits()


def agent_command(
    sweep: int | str,
    *,
    slots: Slots,
    folder: str,
    limits: Limits = NO_LIMITS,
    control: int | None = None,
    output: int | None = None,
    quiet: bool = False,
) -> list[str]:
    """For a sweep's key at our server, or its path at another one. The agent ends when the other
    end of its control pipe is closed."""
    words = ["--sweep", str(sweep), *slots.words(), "--folder", folder]
    options = {
        "--control": control,
        "--output": output,
        "--count": limits.count,
        "--time": limits.seconds,
        "--grace": limits.grace,
    }
    for option, value in options.items():
        words += [option, str(value)] if value is not None else []
    return [*_agent_start(), *words, *(["--quiet"] if quiet else [])]


def _agent_start() -> list[str]:
    return [sys.executable, "-I", "-S", "-c", _START.format(SOURCE)]


def working_folder(folder: str | None) -> str:
    """Where a sweep's programs run: where it was made, or here, on a machine without that place."""
    return folder if folder is not None and Path(folder).is_dir() else str(Path.cwd())


def start_agent(
    sweep: Sweep, slots: Slots, variables: Mapping[str, str], limits: Limits = NO_LIMITS
) -> AgentStarted:
    """In the background, in the sweep's own folder."""
    folder = working_folder(sweep["folder"])
    words = agent_command(sweep["key"], slots=slots.of_sweep(sweep), folder=folder, limits=limits)
    return start_in_background(words, sweep["id"], folder, variables)


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
