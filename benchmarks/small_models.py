"""A program as researchers write it, for `packing.py` and `gauge.py`: trains and logs by wandb.

    python small_models.py --model mlp --seconds 20 --note steps.jsonl

The data lie on the GPU, so that what is measured is how programs share it. Beside what it logs it
notes how far it is, for whoever measures. Without a GPU it computes on the CPU.
"""

from __future__ import annotations

import argparse
import json
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


def context_bytes() -> int:
    """What CUDA takes of the card beside torch's own: measured before anything else is there, so
    the card has to be ours alone."""
    import ctypes

    library = ctypes.CDLL("libnvidia-ml.so.1")

    class Memory(ctypes.Structure):
        _fields_ = tuple((name, ctypes.c_ulonglong) for name in ("total", "free", "used"))

    def used() -> int:
        told, device = Memory(), ctypes.c_void_p()
        library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))
        library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(told))
        return int(told.used)

    library.nvmlInit_v2()
    before = used()
    # A product loads cuBLAS too, whose workspace is torch's, and its kernels, which are not.
    small = torch.ones(8, 8, device="cuda")
    torch.mm(small, small).sum().item()
    return used() - before - torch.cuda.memory_reserved()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=("mlp", "cnn", "large"), required=True)
    parser.add_argument("--seconds", type=float, help="from the first step on")
    parser.add_argument("--until", type=float, help="epoch seconds")
    parser.add_argument("--note", required=True)
    parser.add_argument("--figures", help="where torch's own figures go")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    context = context_bytes() if args.figures and device == "cuda" else 0
    model, data = make_model(args.model)
    model, data = model.to(device), data.to(device)
    labels = torch.randint(0, 10, (len(data),), device=device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = wandb.init(config=vars(args))
    step, logged = 0, 0.0
    end = args.until
    with Path(args.note).open("a", buffering=1) as note:
        while end is None or time.time() < end:
            for _ in range(10):
                optimizer.zero_grad(set_to_none=True)
                loss = torch.nn.functional.cross_entropy(model(data), labels)
                loss.backward()
                optimizer.step()
                step += 1
            now = time.time()
            end = end or now + args.seconds
            if now - logged >= LOG_EVERY:
                logged = now
                run.log({"loss": float(loss)}, step=step)  # Waits for the GPU.
                note.write(json.dumps([time.time(), step]) + "\n")
                if args.figures:
                    held = torch.cuda.max_memory_reserved() if device == "cuda" else 0
                    Path(args.figures).write_text(
                        json.dumps({"reserved": held, "context": context})
                    )
    run.finish()


if __name__ == "__main__":
    main()
