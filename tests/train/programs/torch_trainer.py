"""Trains a small network with dropout, momentum and a schedule; prints every bit of the result."""

import hashlib
import os
import time

import torch

from runyard import train


def main() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 32), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 1)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
    state = train.Checkpoint(
        model=model,
        optimizer=optimizer,
        schedule=schedule,
        every_steps=int(os.environ.get("EVERY_STEPS", "5")),
    )
    start = state.resume()
    print("training", flush=True)
    for _ in train.steps(start, int(os.environ.get("STEPS", "40")), state, show=False):
        inputs = torch.randn(16, 4)
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        time.sleep(float(os.environ.get("PAUSE", "0")))
    weights = b"".join(value.detach().numpy().tobytes() for value in model.parameters())
    print("result", hashlib.sha256(weights).hexdigest())


main()
