"""Fits a line by stochastic gradient descent, slowly enough to be killed at any moment.

Prints its result with every bit. KILL_AT_EVENT=n kills it, as kill -9 would, at the n-th thing
that it does to a file in its checkpoint folder.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from runyard import train

STEPS = int(os.environ.get("STEPS", "60"))
PAUSE = float(os.environ.get("PAUSE", "0.002"))
FOLDER = Path(os.environ["RUNYARD_CHECKPOINT_DIR"])


def kill_at(event: int) -> None:
    seen = 0

    def hook(name: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        if name.startswith(("open", "os.", "shutil.")) and str(FOLDER) in str(arguments):
            seen += 1
            if seen == event:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def main() -> None:
    if "KILL_AT_EVENT" in os.environ:
        kill_at(int(os.environ["KILL_AT_EVENT"]))
    random.seed(1)
    np.random.seed(2)
    generator = np.random.default_rng(3)
    weights = np.zeros(2)
    # Ballast: writing takes long enough to be hit.
    ballast = np.arange(int(os.environ.get("BALLAST", "20000")), dtype=float)
    history: list[float] = []
    state = train.Checkpoint(
        weights=weights,
        generator=generator,
        ballast=ballast,
        history=history,
        every_steps=int(os.environ.get("EVERY_STEPS", "3")),
    )
    start = state.resume()
    print("training", flush=True)
    for step in train.steps(start, STEPS, state, show=False):
        assert len(history) == step, "the parts of a checkpoint belong together"
        x = generator.normal(size=8) + np.random.normal() * 0.01
        y = 3 * x - 1 + random.gauss(0, 0.1)
        error = weights[0] * x + weights[1] - y
        weights -= 0.1 * np.array([(error * x).mean(), error.mean()])
        ballast += weights[0]
        history.append(float((error**2).mean()))
        state.score(history[-1])
        time.sleep(PAUSE)
    print("result", weights.tobytes().hex(), ballast[-1].hex(), sum(history).hex())


main()
