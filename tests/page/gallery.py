"""The run of examples/media, which logs one of everything that wandb has, by the real client."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from runyard.home import Home
from tests.live.programs import stock_client

PROJECT = "gallery"
_PROGRAM = Path(__file__).parents[2] / "examples" / "media" / "gallery.py"


def log_gallery(home: Home, folder: Path, name: str, shift: int = 0) -> None:
    """A run of that name and id; another `shift`, another picture."""
    subprocess.run(
        [sys.executable, str(_PROGRAM), "--shift", str(shift)],
        cwd=folder,
        env={**os.environ, **stock_client(home), "WANDB_RUN_ID": name, "WANDB_NAME": name},
        check=True,
        timeout=240,
    )
