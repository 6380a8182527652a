"""Takes a run back to a step, or begins another from there: `rewinding.py base|rewind|fork`."""

import sys

import wandb

what = sys.argv[1]
if what == "base":
    run = wandb.init(id="base", config={"from": "base"})
    for step in range(10):
        run.log({"value": step})
elif what == "rewind":
    run = wandb.init(resume_from="base?_step=4")
    for step in range(5, 8):
        run.log({"value": 100 + step})
else:
    run = wandb.init(id="branch", fork_from="base?_step=4")
    for step in range(5, 8):
        run.log({"value": 200 + step})
run.finish()
