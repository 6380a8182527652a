"""A loop as people write it: a checkpoint file, wandb.log, nothing of runyard's.

plain.py FOLDER [step] [saves-first]
"""

import itertools
import json
import os
import sys
import time

import wandb

folder, *words = sys.argv[1:]
path = os.path.join(folder, "last.json")
done = 0
if os.path.exists(path):
    with open(path) as file:
        done = json.load(file)["done"]


def save(step: int) -> None:
    with open(f"{path}.part", "w") as file:
        json.dump({"done": step}, file)
    os.replace(f"{path}.part", path)


wandb.init()
for step in itertools.count(done + 1):
    time.sleep(0.1)
    if "saves-first" in words:
        save(step)
    wandb.log({"at": step, "loss": 1 / step}, step=step if "step" in words else None)
    if "saves-first" not in words:
        save(step)
    if os.path.exists(os.environ["MAY_END"]):
        break
