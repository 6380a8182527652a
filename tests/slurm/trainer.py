"""A program whose every value hangs on all before it, and what it logs if nobody cuts it off.

A step that is left out, done twice or done from an old state changes all values after it.
"""

from __future__ import annotations

import json

from runyard.client.api import Api

# Saves when it is told to, and every five steps; written aside, then renamed. `--hold` names a step
# for its first attempt, the second, ... at which it stays until somebody ends it.
TRAINS = """\
import argparse, json, os, pathlib, signal, sys, time
import wandb

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--pause", type=float, default=0.02)
parser.add_argument("--hold", type=int, nargs="*", default=[])
parser.add_argument("--lr", type=int, default=1)
asked = parser.parse_args()
attempt = int(os.environ["RUNYARD_ATTEMPT"])
hold = asked.hold[attempt - 1] if attempt <= len(asked.hold) else None
told = []
signal.signal(signal.SIGUSR2, lambda *_: told.append(1))
state = pathlib.Path(os.environ["RUNYARD_CHECKPOINT_DIR"]) / "state.json"
step, value = json.loads(state.read_text()) if state.exists() else (0, asked.lr)

def save():
    aside = state.with_suffix(".new")
    aside.write_text(json.dumps((step, value)))
    aside.rename(state)

run = wandb.init()
print("lr", asked.lr, "goes on from", step, flush=True)
while step < asked.steps:
    value = (value * 31 + step * asked.lr) % 10007
    run.log({"value": value}, step=step)
    step += 1
    if told or step % 5 == 0:
        save()
    if told:
        run.finish()
        sys.exit(75)
    time.sleep(asked.pause)
    if step == hold:
        time.sleep(0.5)
        print("lr", asked.lr, "holds at", step, flush=True)
        while not told:
            time.sleep(0.02)
run.finish()
print("lr", asked.lr, "ended at", step, flush=True)
"""


def uncut(steps: int, lr: int = 1) -> list[tuple[int, int]]:
    """Steps and values of a run that nobody cut off."""
    found, value = [], lr
    for step in range(steps):
        value = (value * 31 + step * lr) % 10007
        found.append((step, value))
    return found


def history(api: Api, run: str) -> list[tuple[int, int]]:
    """What the server has of a run, row by row."""
    return [(row["_step"], row["value"]) for row in api.rows(api.run(run))]


def sweep_file(lrs: list[int], python: str = "python", **words: object) -> str:
    """A grid of trainers; `words` are the trainer's other options."""
    options = [f"--{name}={value}" for name, value in words.items()]
    command = [python, "${program}", "${args}", *options]
    parameters = {"lr": {"values": lrs}}
    file = {"program": "trains.py", "method": "grid", "command": command, "parameters": parameters}
    return json.dumps(file)
