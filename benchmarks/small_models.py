"""A program as researchers write it, for `packing.py` and `gauge.py`: trains and logs by wandb.

    python small_models.py --model mlp --seconds 20 --note steps.jsonl

The data lie on the GPU, so that what is measured is how programs share it. Beside what it logs it
notes how far it is, for whoever measures. Without a GPU it computes on the CPU.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import time
from pathlib import Path
from typing import Any

import torch
import wandb

BATCH = 128
LOG_EVERY = 0.2


def make_model(name: str) -> tuple[Any, Any]:
    """A model and a batch for it."""
    if name == "mlp":
        layers = [torch.nn.Linear(256, 256), torch.nn.ReLU()] * 3
        return torch.nn.Sequential(*layers, torch.nn.Linear(256, 10)), torch.randn(BATCH, 256)
    if name == "large":
        layers = [torch.nn.Linear(4096, 4096), torch.nn.ReLU()] * 2
        wide = [torch.nn.Linear(4096, 4096) for _ in range(12)]
        return torch.nn.Sequential(*layers, *wide, torch.nn.Linear(4096, 10)), torch.randn(
            2048, 4096
        )
    if name == "gpt":
        return Gpt(), torch.randint(0, Gpt.WORDS, (16, 128))
    if name == "resnet":
        import torchvision

        return torchvision.models.resnet18(num_classes=10), torch.randn(32, 3, 64, 64)
    parts: list[Any] = []
    for before, after in ((3, 32), (32, 64), (64, 128)):
        parts += [
            torch.nn.Conv2d(before, after, 3, padding=1),
            torch.nn.BatchNorm2d(after),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(2),
        ]
    model = torch.nn.Sequential(*parts, torch.nn.Flatten(), torch.nn.Linear(128 * 16, 10))
    return model, torch.randn(BATCH, 3, 32, 32)


class Gpt(torch.nn.Module):
    """Four layers of 256; says one class for each sequence, as the others do for each image."""

    WORDS = 1000

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(self.WORDS, 256)
        layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True, norm_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 4)
        self.head = torch.nn.Linear(256, 10)

    def forward(self, tokens: Any) -> Any:
        return self.head(self.layers(self.words(tokens)).mean(1))


class Card:
    """What the driver says the card holds. The card has to be ours alone."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.library.nvmlInit_v2()
        self.before = self.used()

    def used(self) -> int:
        told, device = Memory(), ctypes.c_void_p()
        self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))
        self.library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(told))
        return int(told.used)

    def context(self) -> int:
        """What CUDA has taken beside torch's own: it grows with every kernel that is loaded."""
        return self.used() - self.before - int(torch.cuda.memory_reserved())


class Memory(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_ulonglong) for name in ("total", "free", "used"))


def figures(card: Card | None) -> dict[str, int]:
    """What the program knows of its GPU memory."""
    if card is None:
        return {"reserved": 0, "context": 0}
    return {"reserved": torch.cuda.max_memory_reserved(), "context": card.context()}


def seconds_since_start() -> float:
    """How old this process is: a forked one begins with its fork."""
    began = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - began / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=("mlp", "cnn", "gpt", "resnet", "large"), required=True)
    parser.add_argument("--seconds", type=float, help="from the first step on")
    parser.add_argument("--until", type=float, help="epoch seconds")
    parser.add_argument("--steps", type=int, help="end after so many")
    parser.add_argument("--ballast", type=float, default=0.0, help="GiB that it also takes")
    parser.add_argument("--note", required=True)
    parser.add_argument("--figures", help="where torch's own figures go")
    parser.add_argument("--starts", help="a file to add to: seconds until the first step")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    card = Card() if args.figures and device == "cuda" else None
    model, data = make_model(args.model)
    model, data = model.to(device), data.to(device)
    labels = torch.randint(0, 10, (len(data),), device=device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = wandb.init(config=vars(args))
    step, logged = 0, 0.0
    end = args.until
    ballast = []
    with Path(args.note).open("a", buffering=1) as note:
        while (end is None or time.time() < end) and step < (args.steps or step + 1):
            for _ in range(10):
                optimizer.zero_grad(set_to_none=True)
                loss = torch.nn.functional.cross_entropy(model(data), labels)
                loss.backward()
                optimizer.step()
                step += 1
            if args.starts and step == 10:
                with Path(args.starts).open("a") as starts:
                    starts.write(f"{seconds_since_start():.3f}\n")
            if args.ballast and not ballast:
                # Late, as optimizers and longer sequences take theirs: nobody saw it coming.
                ballast = [torch.empty(int(args.ballast * 2**30), dtype=torch.uint8, device=device)]
            now = time.time()
            end = end or (now + args.seconds if args.seconds else None)
            if now - logged >= LOG_EVERY:
                logged = now
                run.log({"loss": float(loss)}, step=step)  # Waits for the GPU.
                note.write(json.dumps([time.time(), step]) + "\n")
                if args.figures:
                    # Whoever measures us may end us at any moment.
                    aside = Path(f"{args.figures}.new")
                    aside.write_text(json.dumps(figures(card)))
                    aside.replace(args.figures)
        note.write(json.dumps([time.time(), step]) + "\n")
    run.finish()


if __name__ == "__main__":
    main()
