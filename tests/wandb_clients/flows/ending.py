"""A run that ends in the way its argument names."""

import sys
import time

import wandb

how = sys.argv[1]
run = wandb.init(id=how, name=how)
for step in range(5):
    run.log({"step": step})
if how == "code":
    sys.exit(3)
if how == "exception":
    raise RuntimeError("the loss went through the roof")
if how == "interrupt":
    print("ready", flush=True)
    time.sleep(60)
