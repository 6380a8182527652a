"""Which programs are cut off, with which releases of the client."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from tests.cuts.trials import IS_WHOLE, Cell
from tests.train.frameworks import ensure_framework
from tests.wandb_clients.environments import ensure_environment
from tests.wandb_clients.versions import VERSIONS

_SMALL = ("0.31.0", "0.17.9")
# RUNYARD_CUT_CELLS=PATTERN: of the whole form, the cells whose names it matches.
_CHOSEN = re.compile(os.environ.get("RUNYARD_CUT_CELLS", ""))


def client_cells() -> list[Cell]:
    """Plain programs: with every release in the whole form, with two kinds of client else."""
    cells = [cell for version in (VERSIONS if IS_WHOLE else _SMALL) for cell in _of(version)]
    return _chosen(cells)


def job_cells() -> list[Cell]:
    """The same for jobs, of which a small machine runs fewer at a time."""
    return client_cells() if IS_WHOLE else client_cells()[1:3]


def _of(version: str) -> Iterator[Cell]:
    python = ensure_environment(version)
    yield Cell(f"{version}-step", python, "plain.py", ("step",))
    yield Cell(f"{version}-shell", python, "plain.py", ("step",), in_shell=True)
    if not IS_WHOLE:
        return
    yield Cell(f"{version}-no-step", python, "plain.py")
    yield Cell(f"{version}-saves-first", python, "plain.py", ("step", "saves-first"))
    yield Cell(f"{version}-saves-first-no-step", python, "plain.py", ("saves-first",))
    yield Cell(f"{version}-train", python, "with_train.py", ("step",))
    yield Cell(f"{version}-train-no-step", python, "with_train.py")


def framework_cells() -> list[Cell]:
    """Trainers that others wrote, with the newest client."""
    torch, trainer = ensure_framework("torch"), ensure_framework("transformers")
    cells = [
        Cell("torch", torch, "torch_loop.py"),
        Cell("torch-shell", torch, "torch_loop.py", in_shell=True),
        Cell("lightning", torch, "lightning_fit.py", counter="trainer/global_step"),
        Cell("transformers", trainer, "trainer.py", counter="train/global_step"),
    ]
    return _chosen(cells)


def _chosen(cells: list[Cell]) -> list[Cell]:
    return [cell for cell in cells if _CHOSEN.search(cell.name)]
