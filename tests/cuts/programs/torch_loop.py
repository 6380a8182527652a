"""PyTorch's usual loop: model, optimizer, torch.save, wandb.log with the step."""

import itertools
import os
import sys
import time

import torch
import wandb

torch.manual_seed(0)
path = os.path.join(sys.argv[1], "last.pt")
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.AdamW(model.parameters())
done = 0
if os.path.exists(path):
    saved = torch.load(path)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    done = saved["step"]
wandb.init()
for step in itertools.count(done + 1):
    inputs = torch.randn(64, 4)
    loss = ((model(inputs) - inputs.sum(1, keepdim=True)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    wandb.log({"at": step, "loss": loss.item()}, step=step)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    torch.save(state, f"{path}.part")
    os.replace(f"{path}.part", path)
    time.sleep(0.1)
    if os.path.exists(os.environ["MAY_END"]):
        break
