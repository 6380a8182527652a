"""A trial that has to make room, and goes on where it stopped when its turn comes again."""

import sys

import wandb

run = wandb.init(resume="allow")
for _ in range(4):
    run.log({"value": 1})
if not run.resumed:
    run.mark_preempting()
    sys.exit(1)
run.finish()
