"""What a training run has come to, as its checkpoints tell it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from runyard.save_protocol import MANIFEST
from runyard.train import folders


def weights_of(folder: Path, part: str = "model.pt") -> tuple[int, str]:
    """The step of the newest checkpoint below a run's folder, and the digest of its model."""
    entry = folders.saved(folder / "checkpoints")[-1]
    digest: str = folders.verify(entry.path)["files"][part][1]
    return entry.step, digest


def best_of(folder: Path) -> list[Any]:
    """The best score, and after which step it was."""
    manifest = json.loads((folder / "checkpoints" / "latest" / MANIFEST).read_text())
    best: list[Any] = manifest["best"][:2]
    return best
