"""DDP over gloo: what the ranks agree about, each claim checked on every rank."""

import json
import os
import random
import sys
import time

import torch

from runyard import train


def main() -> None:
    """What is to be done with which checkpoint folder, one after the other, as pairs of words."""
    with train.distributed() as ranks:
        assert ranks.size == 2
        for mode, folder in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
            os.environ["RUNYARD_CHECKPOINT_DIR"] = folder
            trains(ranks, mode)


def trains(ranks: train.Ranks, mode: str) -> None:
    own_seed = ranks.seed(5)
    model = ranks.wrap(torch.nn.Linear(3, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    # By the clock, which differs between ranks: rank 0's counts.
    every = 0.02 if ranks.main else 1e9
    # Rank 1 may have a folder of its own.
    folder = None if ranks.main else os.environ.get("FOLDER_OF_RANK_1")
    state = train.Checkpoint(folder=folder, model=model, optimizer=optimizer, every_seconds=every)
    start = state.resume()
    first_draw = random.random()
    for step in train.steps(start, 40, state):
        inputs = torch.randn(8, 3)  # Other numbers on each rank.
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        logged = ranks.mean({"loss": loss.item(), "rank": ranks.rank})
        assert logged["rank"] == 0.5
        if step % 10 == 9:
            state.score(logged["loss"] if ranks.main else 1e9)
        time.sleep(0.01)
        if mode == "stop" and step == 20 and not ranks.main:
            # One rank alone hears of it.
            os.kill(os.getpid(), __import__("signal").SIGUSR2)
    ranks.print("only rank 0 prints this")
    weights = [value.detach().flatten().tolist() for value in model.parameters()]
    everyone = {
        "seed": own_seed,
        "start": start,
        "draw": first_draw,
        "best": state.best_score,
        "weights": weights,
    }
    with open(f"{os.environ['RUNYARD_CHECKPOINT_DIR']}-rank{ranks.rank}", "w") as file:  # noqa: PTH123
        json.dump(everyone, file)


def out_of_step() -> None:
    with train.distributed() as ranks:
        state = train.Checkpoint()
        for _ in train.steps(0, 5, state):
            if ranks.main:
                state.score(1.0)


def fails_on_rank_0() -> None:
    with train.distributed() as ranks:
        ranks.from_main(lambda: 1 / 0)


{"out-of-step": out_of_step, "rank-0-fails": fails_on_rank_0}.get(sys.argv[1], main)()
