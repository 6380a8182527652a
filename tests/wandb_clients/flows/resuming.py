"""Begins a run or goes on with it: `resuming.py MODE ID STEPS [die]`."""

import os
import sys
import time

import wandb

mode, run_id, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
try:
    run = wandb.init(id=run_id if run_id != "-" else None, resume=mode, config={mode: True})
except Exception as error:  # The class has moved between versions.
    print(f"refused: {type(error).__name__}")
    sys.exit(7)
print(f"id={run.id} resumed={run.resumed}")
for _ in range(steps):
    run.log({"seen": 1.0})
print(f"line of {mode}")
if "die" in sys.argv:
    time.sleep(4)  # Until the rows have left: the client sends them every two seconds.
    sys.stdout.flush()
    os._exit(1)
run.finish()
