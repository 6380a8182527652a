"""Two runs that are told to make room: one was through with its work, the other was not."""

import sys

import wandb

for code in (0, 1):
    run = wandb.init(id=f"code-{code}")
    run.log({"value": 1})
    run.mark_preempting()
    if code:
        sys.exit(code)
    run.finish()
