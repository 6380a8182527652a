"""In which order the test files begin: the longest first, so that no process is alone at the end.

`scripts/suite.py` keeps how long each file took the last time. Where that is not known, as in a
fresh checkout, folders whose files take minutes go first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

SECONDS = Path(".cache/seconds")
_LONG_FOLDERS = (
    "wandb_clients", "tutorials", "cuts", "slurm", "nodes", "train", "page", "live",
)  # fmt: skip
# The order of shorter ones does not matter.
_LONG_SECONDS = 20.0


def read_seconds(root: Path) -> dict[str, float]:
    """How long each test file took, by its path from `root`."""
    try:
        return dict(json.loads((root / SECONDS).read_text()))
    except (OSError, ValueError):
        return {}


def keep_seconds(root: Path, seconds: Mapping[str, float]) -> None:
    """Also those of files that did not run this time stay."""
    known = {**read_seconds(root), **{file: round(took, 1) for file, took in seconds.items()}}
    (root / SECONDS).parent.mkdir(exist_ok=True)
    (root / SECONDS).write_text(json.dumps(known, indent=0, sort_keys=True))


def turn(file: str, seconds: Mapping[str, float]) -> tuple[float, int]:
    """What test files are sorted by."""
    took = seconds.get(file, 0.0)
    parts = Path(file).parts
    folders = [number for number, name in enumerate(_LONG_FOLDERS) if name in parts]
    return (-took if took >= _LONG_SECONDS else 0.0), folders[0] if folders else len(_LONG_FOLDERS)
