"""Ranks that take one trial of a sweep. The agent is a stand-in with the real one's manners."""

import os
import sys
import threading
import types
from pathlib import Path

import torch

from runyard import train

assert torch.__version__


def agent(sweep: str, function: object, count: int, project: object, entity: object) -> None:
    """Like wandb.agent: calls the function in a thread, and returns if there is no trial."""
    assert (sweep, count) == ("team/project/sweep", 1)
    if sys.argv[1] == "none-left":
        return
    if sys.argv[1] == "no-server":
        raise ConnectionError("no route to the tracker")
    values = Path(os.environ["RUNYARD_CHECKPOINT_DIR"] + ".yaml")
    values.write_text("wandb_version: 1\nlr:\n  value: 1E-5\n")
    os.environ["WANDB_SWEEP_PARAM_PATH"] = str(values)
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


sys.modules["wandb"] = types.SimpleNamespace(agent=agent, run=None)  # type: ignore[assignment]


def trial(values: dict[str, object]) -> None:
    print("rank", ranks.rank, "trains with", values, flush=True)
    if sys.argv[1] == "time-is-up":
        train.go_on()


with train.distributed() as ranks:
    print("trial:", train.sweep_trial("team/project/sweep", trial), flush=True)
