"""Takes a run back to a step, or begins another from there: `rewinding.py rewind|fork`."""

import sys

import wandb

run = wandb.init(id="base", config={"from": "base"})
for step in range(10):
    run.log({"value": step})
run.finish()

if sys.argv[1] == "rewind":
    run = wandb.init(resume_from="base?_step=4")
else:
    run = wandb.init(id="branch", fork_from="base?_step=4")
for step in range(5, 8):
    run.log({"value": 100 + step})
run.finish()
