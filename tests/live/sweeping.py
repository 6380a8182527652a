"""Sweeps as researchers start them, and what is left on the machine afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.home import Home
from runyard.shapes.sweeps import Sweep, Trial
from tests.conftest import RunRunyard

# Says what it was given, and takes its time: any language will do.
WITHOUT_WANDB = """\
import os, sys, time
given = dict(word[2:].split("=") for word in sys.argv[1:])
print("attempt", os.environ["RUNYARD_ATTEMPT"], "pid", os.getpid(), flush=True)
time.sleep(float(given.get("seconds", 0)))
sys.exit(int(given.get("code", 0)))
"""
WITH_WANDB = """\
import argparse, wandb
parser = argparse.ArgumentParser()
for name in ("lr", "bs", "seed"):
    parser.add_argument(f"--{name}", type=float, default=0)
args = parser.parse_args()
run = wandb.init(config=vars(args))
for step in range(3):
    run.log({"loss": abs(run.config.lr - 0.01) + run.config.bs / 1000 + args.seed / 100})
run.finish()
"""


def write_sweep(folder: Path, program: str, **config: Any) -> Path:
    """A program and the sweep file that names it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.py").write_text(program)
    file = folder / "sweep.yaml"
    file.write_text(json.dumps({"program": "train.py", "method": "grid", **config}))
    return file


def with_python() -> dict[str, str]:
    """An environment whose `python` is the one that runs the tests."""
    return {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@contextlib.contextmanager
def started_sweep(home: Home, *words: str, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """`runyard sweep` in the background; nothing of it is left behind, whatever becomes of it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "runyard", "sweep", *words],
        cwd=cwd,
        env={**os.environ, **with_python()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        with process:
            yield process
            process.kill()
    finally:
        for pid in processes_of(home, "node|train"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def api_of(home: Home) -> Api:
    return ensure_server(home).api


def trials_of(home: Home) -> list[Trial]:
    """The trials of the newest sweep."""
    api = api_of(home)
    return api.sweeps.trials(api.sweeps.sweeps(limit=1)[0]["key"])


def processes_of(home: Home, pattern: str = "") -> dict[int, str]:
    """Live processes that belong to this state folder's sweeps: agents, keepers, programs."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            environ = (entry / "environ").read_bytes().split(b"\0")
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        ours = f"RUNYARD_HOME={home.path}".encode() in environ
        if ours and state != "Z" and re.search(pattern, command):
            found[int(entry.name)] = command
    return found


def agents_of(home: Home) -> list[int]:
    """The agent's process first, then its keeper's."""
    return sorted(processes_of(home, r"from runyard\.node\.agent\.__main__ import main"))


def programs_of(home: Home) -> dict[int, str]:
    return processes_of(home, r"train\.py")


def kill(*pids: int) -> None:
    """All at once: none sees another's end and acts on it."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, number)


def sweep_json(runyard: RunRunyard) -> Sweep:
    """The newest sweep."""
    listed = runyard("runs", "--sweeps", "--json", "-l", "1")
    assert listed.returncode == 0, listed.stderr
    found: Sweep = json.loads(listed.stdout)[0]
    return found
