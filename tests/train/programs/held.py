"""Runs a program of `train.steps` and holds its first attempt after two steps until it is told.

So whoever cuts it off need not hurry: `python held.py PROGRAM WORDS ...`.
"""

import os
import runpy
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runyard import train
from runyard.train.stopping import told_to_stop

steps = train.steps


def held(start: int, total: int, *checkpoints: train.Checkpoint, **more: Any) -> Iterator[int]:
    for step in steps(start, total, *checkpoints, **more):
        yield step
        if (
            step == 1
            and os.environ["RUNYARD_ATTEMPT"] == "1"
            and os.environ.get("RANK", "0") == "0"
        ):
            print("held after", step + 1, "steps", flush=True)
            while not told_to_stop(0):
                time.sleep(0.02)


train.steps = held
del sys.argv[0]
sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
runpy.run_path(sys.argv[0], run_name="__main__")
