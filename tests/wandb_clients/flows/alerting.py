"""A program that wants somebody to know, and says so twice within a minute."""

import wandb

run = wandb.init()
for _ in range(2):
    run.alert("a title", "a text", level=wandb.AlertLevel.WARN)
run.finish()
