"""A run that is told to make room: `preempting.py EXIT_CODE`."""

import sys

import wandb

run = wandb.init(id=f"code-{sys.argv[1]}")
run.log({"value": 1})
run.mark_preempting()
sys.exit(int(sys.argv[1]))
