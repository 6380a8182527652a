"""A sweep without files: made of a dict, worked on by a function in this process."""

import os
import time
from pathlib import Path

import wandb


def train():
    run = wandb.init()
    noted = Path(os.environ["WANDB_DIR"], f"rows-{run.id}")
    for _ in range(8 if run.config["loss"] == 1 else 300):
        run.log({"loss": run.config["loss"]})
        with noted.open("a") as note:
            note.write(".")
        time.sleep(0.3)
    run.finish()


sweep = wandb.sweep(
    {
        "method": "grid",
        "metric": {"name": "loss", "goal": "minimize"},
        "parameters": {"loss": {"values": [1, 2]}},
        "early_terminate": {"type": "hyperband", "min_iter": 3},
    }
)
print(f"made {sweep}.")
wandb.agent(sweep, function=train)
print("the agent came back")
