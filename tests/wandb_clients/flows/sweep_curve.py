"""A trial that logs the same loss again and again, and notes on disk how often it did.

The best setting is soon through; any other goes on until it is stopped.
"""

import os
import time
from pathlib import Path

import wandb

run = wandb.init()
noted = Path(os.environ["WANDB_DIR"], f"rows-{run.id}")
for _ in range(8 if run.config["loss"] == 1 else 300):
    run.log({"loss": run.config["loss"]})
    with noted.open("a") as note:
        note.write(".")
    time.sleep(0.3)
run.finish()
