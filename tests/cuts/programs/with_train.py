"""The same with runyard.train: with_train.py FOLDER [step]"""

import os
import sys
import time

import wandb

from runyard import train

run = wandb.init()
state = train.Checkpoint(every_steps=1, value=0.0)
for step in train.steps(state.resume(), 100_000, state, show=False):
    time.sleep(0.1)
    state.value = 1 / (step + 1)
    named = {"step": step + 1} if "step" in sys.argv else {}
    run.log({"at": step + 1, "loss": state.value}, **named)
    if os.path.exists(os.environ["MAY_END"]):
        break
run.finish()
