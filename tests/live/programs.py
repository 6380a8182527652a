"""Programs as researchers write them, and what the server has of their runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.client.wandb_variables import wandb_variables
from runyard.home import Home, read_discovery
from runyard.shapes.runs import Series
from tests.conftest import RunRunyard

PYTHON = sys.executable

LOG_STEPS = """
import sys, time, wandb
steps, hertz = int(sys.argv[1]), float(sys.argv[2])
run = wandb.init(config={"steps": steps})
begin = time.time()
for step in range(steps):
    run.log({"value": step * step, "nested": {"half": step / 2}})
    time.sleep(max(0.0, begin + (step + 1) / hertz - time.time()))
run.finish()
"""


def write_program(folder: Path, text: str, name: str = "train.py") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(text)
    return program


def start_run(program: Path, *words: str) -> subprocess.Popen[bytes]:
    """`runyard run` in the background."""
    return subprocess.Popen(
        [PYTHON, "-m", "runyard", "run", "-q", "--", PYTHON, str(program), *words],
        cwd=program.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def stock_client(home: Home) -> dict[str, str]:
    """What a program's environment needs to log here by itself; the client sends often."""
    key = ensure_server(home).api.people.shell_key("shell of a test", None)
    found = read_discovery(home)
    assert found is not None
    often = {"WANDB_X_FILE_STREAM_TRANSMIT_INTERVAL": "1", "WANDB_SILENT": "true"}
    return {**often, **wandb_variables(found.url, key, {**os.environ, **often})}


def list_runs(runyard: RunRunyard) -> list[dict[str, Any]]:
    listed = runyard("runs", "--json")
    assert listed.returncode == 0, listed.stderr
    found: list[dict[str, Any]] = json.loads(listed.stdout)
    return found


def curves(home: Home, words: str) -> dict[str, Series]:
    """Every stored point of every metric of a run."""
    api: Api = ensure_server(home).api
    return {series["key"]: series for series in api.metrics(api.run(words), points=10**9)}
