"""A trial that goes on where it was cut off, and says once on disk that it came to its end."""

import os
import time
from pathlib import Path

import wandb

run = wandb.init(resume="allow")
for step in range(run.starting_step, 8):
    run.log({"value": step})
    time.sleep(0.4)
run.finish()
with Path(os.environ["ENDS"]).open("a") as ends:
    ends.write(f"{run.config['point']}\n")
