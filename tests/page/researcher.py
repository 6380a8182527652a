"""Runs as a researcher has them, for twelve jobs on the page; and a hand that counts its clicks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page

from runyard.home import Home
from tests.live.programs import stock_client, write_program
from tests.page.yard import Yard

PROJECT = "flowers"

# Four settings with three seeds each; pictures and a confusion matrix of the first seed.
TRAIN = """
import math, random, sys
import numpy, wandb
random.seed(7)
print("a word of the console")
for number in range(12):
    lr, seed = [0.003, 0.01, 0.03, 0.1][number % 4], number // 4
    run = wandb.init(
        id=f"f{number}", name=f"lr{lr}-s{seed}", project="flowers",
        config={"lr": lr, "seed": seed}, settings=wandb.Settings(console="off"),
    )
    for step in range(30):
        loss = 2 * math.exp(-step * lr * 3) + random.random() * 0.02 + 0.1 * seed
        row = {"loss": loss, "epoch": step / 3, "accuracy": 1 - loss / 2.5}
        if seed == 0 and step % 10 == 0:
            shade = numpy.full((16, 16, 3), int(2000 * lr) % 255, "uint8")
            row["samples"] = wandb.Image(shade, caption=f"{lr} at {step}")
        run.log(row)
    if seed == 0:
        answers = [0, 1, 1, 0, number % 2, 1]
        matrix = wandb.plot.confusion_matrix(
            y_true=[0, 1, 1, 0, 0, 1], preds=answers, class_names=["rose", "tulip"]
        )
        run.log({"confusion": matrix})
    run.finish()
"""


def train(home: Home, folder: Path) -> None:
    environment = {**os.environ, **stock_client(home), "WANDB_PROJECT": PROJECT}
    program = write_program(folder, TRAIN)
    words = [sys.executable, str(program)]
    subprocess.run(words, cwd=folder, env=environment, check=True, timeout=240)


def fill_untidy(yard: Yard, count: int) -> None:
    """Short runs of a project that nobody has looked after."""
    for number in range(count):
        run: dict[str, Any] = {"entity": yard.me(), "project": "untidy", "id": f"u{number}"}
        yard.connection.post("/api/runs", {**run, "name": f"try-{number}", "command": ["true"]})
        row = json.dumps({"_step": 0, "loss": 1.0 / (number + 1)})
        files = {"wandb-history.jsonl": row, "wandb-summary.json": row}
        yard.connection.post(
            f"/files/{run['entity']}/{run['project']}/{run['id']}/file_stream",
            {"files": {name: {"offset": 0, "content": [line]} for name, line in files.items()}},
        )


class Hand:
    """Does what a person does, and counts: each click, each choice of a list as two."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0

    def click(self, *places: Locator) -> None:
        for place in places:
            self.clicks += 1
            place.click()

    def choose(self, select: Locator, value: str) -> None:
        self.clicks += 2
        select.select_option(value)

    def type(self, field: Locator, text: str) -> None:
        self.clicks += 1
        field.fill(text)

    def drop(self, saving: Locator) -> Path:
        """Click on what saves a file."""
        with self.page.expect_download() as saved:
            self.click(saving)
        return Path(saved.value.path())
