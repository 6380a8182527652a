"""The ranks of a program: the same lines of code on a laptop, a GPU, a node and ten nodes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeVar

from runyard.train import exchange
from runyard.train.errors import TrainError
from runyard.train.frameworks import loaded, torch_group
from runyard.train.placement import Placement, find_placement
from runyard.train.randomness import seed_everything, seed_of_rank
from runyard.train.stopping import close, watch_signals

T = TypeVar("T")


class Ranks:
    """This process among those of the program. Made by `train.distributed()`."""

    def __init__(self, placement: Placement) -> None:
        self.rank = placement.rank
        self.size = placement.size
        self.local_rank = placement.local_rank
        self.launcher = placement.launcher

    @property
    def main(self) -> bool:
        """Whether this is rank 0, the one that prints and logs."""
        return self.rank == 0

    @property
    def device(self) -> Any:
        """torch's device for this rank: its own GPU, or the CPU."""
        torch = import_module("torch")
        if torch.cuda.is_available():
            # Where each task sees its own GPU only, that is number 0 for all of them.
            return torch.device("cuda", self.local_rank % torch.cuda.device_count())
        if self.size == 1 and torch.backends.mps.is_available():
            return torch.device("mps")
        return torch.device("cpu")

    def print(self, *words: object) -> None:
        """Print, from rank 0 alone, and at once."""
        if self.main:
            print(*words, flush=True)

    def seed(self, seed: int) -> int:
        """Seed Python, numpy and torch, on each rank differently, and return this rank's seed."""
        own = seed_of_rank(seed, self.rank)
        seed_everything(own)
        return own

    def wrap(self, model: Any) -> Any:
        """The model on this rank's device, inside DDP if there is more than one rank."""
        torch = import_module("torch")
        model = model.to(self.device)
        if self.size == 1:
            return model
        ids = [self.device.index] if self.device.type == "cuda" else None
        return torch.nn.parallel.DistributedDataParallel(model, device_ids=ids)

    def split(self, count: int, name: str = "batch size") -> int:
        """This rank's share of a global number, such as the batch size. It must divide evenly."""
        if count % self.size:
            whole = count // self.size * self.size
            raise TrainError(
                f"{name} {count} cannot be split over {self.size} ranks",
                mend=f"{whole or self.size} or {whole + self.size}",
            )
        return count // self.size

    def mean(self, value: Any) -> Any:
        """A number, or a dict of numbers, averaged over the ranks. Every rank calls it."""
        if isinstance(value, Mapping):
            names = list(value)
            means = _means([float(value[name]) for name in names])
            return dict(zip(names, means, strict=True))
        return _means([float(value)])[0]

    def from_main(self, make: Callable[[], T]) -> T:
        """What rank 0 makes, on every rank. If it fails there, all ranks fail at once."""
        return exchange.from_rank_0("from_main", make)

    def wait(self) -> None:
        """Wait for all ranks."""
        exchange.gather("wait", None)

    def close(self) -> None:
        """Close the W&B run, then the process group."""
        close()

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After an error the other ranks may never come: nobody is waited for.
        if kind is None:
            close()


def distributed(*, backend: str | None = None, framework: str | None = None) -> Ranks:
    """Find this process's place among its ranks, and connect them if there are several.

    Works under torchrun, mpirun, the scheduler's own launcher and nothing at all. With torch
    loaded it starts torch's process group (NCCL for GPUs, gloo for CPUs; `backend` chooses), else
    with JAX loaded JAX's; `framework="jax"` or "torch" says which where both are.
    """
    watch_signals()
    placement = find_placement(os.environ, os.getppid())
    if torch_group() is not None:
        # The program, or Lightning, was quicker.
        return Ranks(placement._replace(rank=exchange.rank(), size=exchange.size()))
    if placement.size > 1:
        if placement.master is None:
            raise TrainError(
                f"{placement.size} ranks on several machines, and nothing says where rank 0 is",
                mend="set MASTER_ADDR to the host of rank 0 and MASTER_PORT to a free port",
            )
        if framework == "jax" or (framework is None and loaded("torch") is None and loaded("jax")):
            _start_jax(placement)
        else:
            _start_torch(placement, backend)
    return Ranks(placement)


def _start_torch(placement: Placement, backend: str | None) -> None:
    try:
        torch = import_module("torch")
        group = import_module("torch.distributed")
    except ImportError as error:
        raise TrainError(
            f"{placement.size} ranks need torch or JAX to talk to each other", said=error
        ) from error
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if gpus:
        torch.cuda.set_device(placement.local_rank % gpus)
    group.init_process_group(
        backend or ("cpu:gloo,cuda:nccl" if gpus else "gloo"),
        init_method=None if placement.launcher == "torchrun" else _address(placement),
        rank=placement.rank,
        world_size=placement.size,
    )


def _start_jax(placement: Placement) -> None:
    import_module("jax").distributed.initialize(
        coordinator_address=f"{placement.master}:{placement.port}",
        num_processes=placement.size,
        process_id=placement.rank,
    )


def _address(placement: Placement) -> str:
    return f"tcp://{placement.master}:{placement.port}"


def _means(values: list[float]) -> list[float]:
    """Sums in the order of ranks, so that every rank gets the same bits."""
    rows = exchange.gather("mean", values)
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]
