"""A run without a server: `offline.py ID FIRST LAST`."""

import sys

import numpy as np
import wandb

run_id, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
run = wandb.init(id=run_id, mode="offline", config={"where": "a node without network"})
for step in range(first, last):
    run.log({"value": step}, step=step)
run.log({"image": wandb.Image(np.zeros((8, 8, 3), dtype=np.uint8))}, step=last)
run.summary["done"] = last
print(f"offline until {last}")
run.finish()
