"""Runs without a server, one for each `ID:FIRST:LAST` it is given, in one process."""

import sys
import time

import numpy as np
import wandb

for number, words in enumerate(sys.argv[1:]):
    run_id, first, last = words.split(":")
    if number:
        time.sleep(1.1)  # The client names a run's folder after the second and the id.
    run = wandb.init(id=run_id, mode="offline", config={"where": "a node without network"})
    for step in range(int(first), int(last)):
        run.log({"value": step}, step=step)
    run.log({"image": wandb.Image(np.zeros((8, 8, 3), dtype=np.uint8))}, step=int(last))
    run.summary["done"] = int(last)
    print(f"offline until {last}")
    run.finish()
