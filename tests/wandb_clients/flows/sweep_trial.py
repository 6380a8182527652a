"""A trial that tells what it was given: on its command line, and in its config."""

import sys

import wandb

run = wandb.init(config={"lr": 2, "opt": {"name": "none", "old": True}, "own": "kept"})
run.config.update({"argv": sys.argv[1:]})
for step in range(5):
    run.log({"loss": float(run.config["lr"]) / (step + 1)})
run.finish()
