import torch
import wandb
from torch.utils.tensorboard import SummaryWriter

run = wandb.init(sync_tensorboard=True)
with SummaryWriter("logs") as writer:
    for step in range(10):
        writer.add_scalar("train/loss", 1 / (step + 1), step)
    writer.add_histogram("weights", torch.randn(100), 9)
    writer.add_image("noise", torch.rand(3, 8, 8), 9)
run.finish()
