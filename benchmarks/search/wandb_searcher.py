"""W&B's open engine, in an interpreter of its own (wandb_side.py)."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from pathlib import Path
from typing import Any


@functools.lru_cache(maxsize=1)  # it takes seconds to start, and "open" begins anew
def start(python: str, source: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [python, str(Path(__file__).with_name("wandb_side.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONPATH": source, "PYTHONWARNINGS": "ignore"},
    )


class WandbSearcher:
    def __init__(self, python: str, source: str, config: dict[str, Any], seed: int) -> None:
        self.process = start(python, source)
        self.say({"open": {"config": config, "seed": seed}})

    def say(self, what: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()

    def ask(self, trial: int) -> dict[str, Any]:
        self.say({"suggest": trial})
        assert self.process.stdout is not None
        answer = self.process.stdout.readline()
        return dict(json.loads(answer)["settings"])

    def tell(self, trial: int, value: float) -> None:
        self.say({"result": {"id": trial, "value": value}})
