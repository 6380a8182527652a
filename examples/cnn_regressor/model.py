"""The network. Put yours here, and its name into MODELS."""

import torch
from torch import nn

from runyard import train


class CNN(nn.Module):
    """Convolutions of the same size throughout, each followed by a leaky ReLU."""

    def __init__(self, in_chan: int, out_chan: int, depth: int, width: int = 64) -> None:
        super().__init__()
        channels = [in_chan, *[width] * (depth - 1), out_chan]
        layers: list[nn.Module] = []
        for i in range(depth):
            layers += [nn.Conv2d(channels[i], channels[i + 1], 3, padding="same"), nn.LeakyReLU()]
        self.layers = nn.Sequential(*layers)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.layers(images)


MODELS = {"cnn": lambda params: CNN(params.in_chan, params.out_chan, params.depth)}
LOSSES = {"mse": nn.MSELoss, "l1": nn.L1Loss}


def build_model(params: train.Params) -> nn.Module:
    return _chosen(MODELS, "model", params)(params)


def build_loss(params: train.Params) -> nn.Module:
    return _chosen(LOSSES, "loss_func", params)()


def build_optimizer(params: train.Params, model: nn.Module) -> torch.optim.Optimizer:
    optimizers = {
        "adam": lambda: torch.optim.Adam(model.parameters(), lr=params.lr),
        "sgd": lambda: torch.optim.SGD(model.parameters(), lr=params.lr, momentum=0.9),
    }
    return _chosen(optimizers, "optimizer", params)()


def build_schedule(params: train.Params, optimizer: torch.optim.Optimizer):
    from torch.optim.lr_scheduler import ConstantLR, CosineAnnealingLR, ReduceLROnPlateau

    schedules = {
        "none": lambda: ConstantLR(optimizer, factor=1.0),
        "cosine": lambda: CosineAnnealingLR(optimizer, T_max=params.max_cosine_lr_epochs),
        "plateau": lambda: ReduceLROnPlateau(optimizer, factor=0.2, patience=5),
    }
    return _chosen(schedules, "scheduler", params)()


def _chosen(choices: dict, key: str, params: train.Params):
    name = str(params[key]).lower()  # The text None in a YAML file is no value.
    if name not in choices:
        raise SystemExit(f"{key}: {params[key]} is unknown; there is {', '.join(choices)}")
    return choices[name]
