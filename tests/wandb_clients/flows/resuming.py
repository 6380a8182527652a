"""Begins a run or goes on with it: `resuming.py MODE:ID STEPS [die]`."""

import os
import sys
import time

import wandb

words, steps = sys.argv[1:3]
mode, _, run_id = words.partition(":")
try:
    run = wandb.init(id=run_id or None, resume=mode, config={mode: True})
except Exception as error:  # The class has moved between versions.
    print(f"refused {mode}: {type(error).__name__}")
    sys.exit(0)
print(f"id={run.id} resumed={run.resumed} starts={run.starting_step}")
for _ in range(int(steps)):
    run.log({"seen": 1.0})
print(f"next={run.step}")
print(f"line of {mode}")
if "die" in sys.argv:
    time.sleep(4)  # Until the rows have left: the client sends them every two seconds.
    os._exit(1)
run.finish()
