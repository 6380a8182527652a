"""A run that goes on until somebody stops it."""

import time

import wandb

run = wandb.init(id="endless")
print("ready", flush=True)
for step in range(3000):
    run.log({"step": step})
    time.sleep(0.1)
