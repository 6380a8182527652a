"""Two ranks train and log one run: what the guide's lines do, against a real server."""

import sys

import torch
import torch.distributed
import wandb

from runyard import train

closed = []  # In which order.
destroy = torch.distributed.destroy_process_group
torch.distributed.destroy_process_group = lambda *words: (closed.append("group"), destroy(*words))

with train.distributed() as ranks:
    seed = ranks.seed(5)
    if ranks.main:
        run = wandb.init(config={"seed": seed})
        finish = run.finish
        run.finish = lambda *words, **more: (closed.append("run"), finish(*words, **more))
    for _ in range(3):
        loss = torch.rand(1).item()  # Another number on each rank.
        print("rank", ranks.rank, "loss", loss)
        mean = ranks.mean({"loss": loss, "rank": ranks.rank})
        if ranks.main:
            wandb.log(mean)
print("rank", ranks.rank, "closed", *closed, "seed", seed, "state", wandb.run, file=sys.stderr)
