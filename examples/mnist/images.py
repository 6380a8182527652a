"""Digits: MNIST's files from a folder, or made-up ones that need no download."""

import gzip
import urllib.request
from pathlib import Path

import numpy as np

SOURCE = "https://ossci-datasets.s3.amazonaws.com/mnist/"
FILES = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")


def fetch(folder: Path) -> None:
    """Bring the files here, once: on a login node, since compute nodes may have no internet."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        if not (folder / name).exists():
            urllib.request.urlretrieve(SOURCE + name, folder / f"{name}.new")  # noqa: S310  (https)
            (folder / f"{name}.new").rename(folder / name)


def load(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images of 784 numbers between 0 and 1, and which digit each is."""
    missing = [name for name in FILES if not (folder / name).exists()]
    if missing:
        raise SystemExit(
            f"{folder / missing[0]} is not there. `python train.py --fetch` brings it, where there "
            "is internet; `--made_up` does without"
        )
    images, labels = (gzip.decompress((folder / name).read_bytes()) for name in FILES)
    pixels = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 784)
    return pixels.astype(np.float32) / 255, np.frombuffer(labels, np.uint8, offset=8).astype(int)


def make_up(count: int = 4000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """As many images of ten patterns, with noise over them: as large as MNIST's, and as easy."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, count)
    patterns = rng.random((10, 784)) > 0.8
    noisy = patterns[labels] * 0.7 + rng.random((count, 784)) * 0.3
    return noisy.astype(np.float32), labels
