"""A network with one hidden layer learns digits. Its settings come from wandb.config.

python train.py --made_up
"""

import argparse
from pathlib import Path

import images
import torch
import wandb
from torch import nn

DATA = Path(__file__).parent / "data"
DEFAULTS = {
    "optimizer": "adam",
    "fc_layer_size": 128,
    "dropout": 0.3,
    "learning_rate": 0.001,
    "batch_size": 64,
    "epochs": 1,
}


def build_network(fc_layer_size: int, dropout: float) -> nn.Module:
    return nn.Sequential(
        nn.Linear(784, fc_layer_size),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(fc_layer_size, 10),
        nn.LogSoftmax(dim=1),
    )


def build_optimizer(network: nn.Module, name: str, learning_rate: float) -> torch.optim.Optimizer:
    if name == "adam":
        return torch.optim.Adam(network.parameters(), lr=learning_rate)
    if name == "sgd":
        return torch.optim.SGD(network.parameters(), lr=learning_rate, momentum=0.9)
    raise SystemExit(f"optimizer: {name} is unknown; there is adam, sgd")


def train_epoch(run, network, optimizer, inputs, labels, batch_size: int) -> float:
    """One pass in random order; the mean loss of its batches."""
    losses = []
    for rows in torch.randperm(len(inputs)).split(batch_size):
        loss = nn.functional.nll_loss(network(inputs[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        run.log({"batch loss": losses[-1]})
    return sum(losses) / len(losses)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--made_up", action="store_true", help="patterns instead of MNIST")
    parser.add_argument("--fetch", action="store_true", help="bring MNIST here, and end")
    for name, value in DEFAULTS.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    args = parser.parse_args()
    if args.fetch:
        images.fetch(DATA)
        return

    settings = {name: getattr(args, name) for name in DEFAULTS}
    with wandb.init(project="mnist", config=settings) as run:
        config = run.config
        torch.manual_seed(0)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        pixels, digits = images.make_up() if args.made_up else images.load(DATA)
        # Every fifth is enough to tell good settings from bad ones.
        inputs = torch.from_numpy(pixels[::5]).to(device)
        labels = torch.from_numpy(digits[::5]).to(device)
        network = build_network(config.fc_layer_size, config.dropout).to(device)
        print(f"{sum(p.numel() for p in network.parameters())} parameters on {device}")
        optimizer = build_optimizer(network, config.optimizer, config.learning_rate)
        for epoch in range(config.epochs):
            loss = train_epoch(run, network, optimizer, inputs, labels, config.batch_size)
            run.log({"loss": loss, "epoch": epoch})
            print(f"epoch {epoch}: loss {loss:.4f}")


if __name__ == "__main__":
    main()
