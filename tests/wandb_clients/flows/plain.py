"""A run with everything that needs no file: config, nested values, summary, console, tags."""

import sys
import time

import wandb

run = wandb.init(
    config={"lr": 0.1, "layers": [64, 32], "opt": {"name": "adam"}, "nothing": None},
    tags=["first", "second"],
    notes="a note",
    group="a group",
    job_type="train",
    name="a name",
)
run.define_metric("epoch", hidden=True)
run.define_metric("val/*", step_metric="epoch")
run.define_metric("accuracy", summary="max")
print("hello from stdout")
print("hello from stderr", file=sys.stderr)
for step in range(10):
    run.log({"loss": 1 / (step + 1), "deep": {"er": {"still": step}}, "a/b.c": -step})
    run.log({"accuracy": [0.1, 0.9, 0.5][step % 3], "epoch": step // 2, "val/loss": step})
run.log({"apart": 1}, commit=False)
run.log({"together": 2})
run.log({"odd": float("nan"), "big": float("inf")}, step=50)
run.summary["best"] = 0.05
run.summary.update({"nested": {"value": 1}})
run.config.update({"later": "yes"})
run.tags = (*run.tags, "third")
time.sleep(3)  # Long enough for a sample of the machine's load.
run.finish()
