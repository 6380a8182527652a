"""The libraries that the program has loaded; nothing here loads one that it has not."""

from __future__ import annotations

import sys
from typing import Any


def loaded(name: str) -> Any:
    """The module if the program imported it, else None."""
    return sys.modules.get(name)


def wandb_run() -> Any:
    """The W&B run that is open in this process, else None."""
    return getattr(loaded("wandb"), "run", None)


def torch_group() -> Any:
    """torch.distributed if a process group is up, else None."""
    group = loaded("torch.distributed")
    return group if group is not None and group.is_available() and group.is_initialized() else None


def jax_group() -> Any:
    """jax if it runs as one of several processes, else None."""
    jax = loaded("jax")
    if jax is None or not hasattr(jax.distributed, "is_initialized"):
        return None
    # Asked first: counting processes would start JAX's devices, maybe too early for the program.
    return jax if jax.distributed.is_initialized() and jax.process_count() > 1 else None
