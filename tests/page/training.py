"""Real runs of the real client, for the page to show."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from runyard.home import Home
from tests.live.programs import stock_client, write_program

PROJECT = "spirals"

TRAIN = """
import math, random, wandb
random.seed(7)
for number in range(6):
    lr, seed = [0.001, 0.01, 0.1][number % 3], number // 3
    run = wandb.init(
        id=f"run{number}", name=f"spiral-{number}", project="spirals",
        config={"lr": lr, "seed": seed, "model": {"width": 64}},
        tags=["baseline"] if number == 0 else None,
        settings=wandb.Settings(console="wrap" if number == 0 else "off"),
    )
    print(f"training with {lr}")
    for step in range(60):
        loss = 2 * math.exp(-step * lr * 3) + random.random() * 0.05
        row = {"train/loss": loss + (9 if (number, step) == (1, 31) else 0), "epoch": step / 10}
        if step % 10 == 0:
            row["val/accuracy"] = 1 - loss / 2.1
            if number == 0:
                picture = [[[step * 4, 80, 200]] * 8] * 8
                import numpy
                row["samples"] = wandb.Image(numpy.array(picture, "uint8"), caption=f"at {step}")
                # Their spread shrinks as the training goes on.
                spread = numpy.linspace(-1, 1, 101) * (60 - step)
                row["gradients/layers.0.weight"] = wandb.Histogram(spread)
        run.log(row)
    if number == 0:
        run.log({"answers": wandb.Table(columns=["text", "score"], data=[["yes", 1], ["no", 0]])})
        model = wandb.Artifact("weights", type="model")
        with model.new_file("weights.txt") as file:
            file.write("1 2 3")
        run.log_artifact(model)
        model.wait()
    if number == 1:
        run.use_artifact("weights:latest")
    run.finish(exit_code=1 if number == 4 else 0)
"""

COLOURS = r"""
import sys
print("\x1b[31mred words\x1b[0m and plain ones")
for number in range(3000):
    print(f"line {number}")
print("the last word")
sys.exit(3)
"""


def train(home: Home, folder: Path) -> None:
    """Six runs with metrics, media, a table and an artifact; and one without wandb that failed."""
    environment = {**os.environ, **stock_client(home), "WANDB_PROJECT": PROJECT}
    program = write_program(folder, TRAIN)
    subprocess.run(
        [sys.executable, str(program)], cwd=folder, env=environment, check=True, timeout=120
    )
    failing = write_program(folder, COLOURS, "colours.py")
    done = subprocess.run(
        [*_RUN, "--name", "colours", "--", sys.executable, str(failing)],
        cwd=folder,
        capture_output=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 3, done.stderr


_RUN = [sys.executable, "-m", "runyard", "run", "-q", "--project", PROJECT]
