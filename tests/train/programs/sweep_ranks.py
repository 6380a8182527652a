"""Ranks that take one trial of each sweep, which rank 0 asks W&B's own agent for."""

import sys

import torch

from runyard import train

assert torch.__version__
MODE, *SWEEPS = sys.argv[1:]


def trial(values: dict[str, object]) -> None:
    print("rank", ranks.rank, "trains with", values, flush=True)
    if MODE == "time-is-up":
        train.go_on()
    if ranks.main:
        import wandb  # Here: the other rank needs none, and starts sooner.

        with wandb.init() as run:
            run.log({"loss": run.config.lr})


with train.distributed() as ranks:
    for sweep in SWEEPS:
        print("trial:", train.sweep_trial(sweep, trial), flush=True)
