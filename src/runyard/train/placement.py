"""Which rank of how many this process is, as its launcher tells it in the environment."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from typing import NamedTuple

from runyard.schedulers.inside import this_job

# Below the ports that kernels hand out for outgoing connections, above the well-known ones.
_FIRST_PORT, _PORTS = 15000, 15000


class Placement(NamedTuple):
    """A process among those of its program."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    master: str | None = None
    port: int | None = None
    launcher: str = "none"


class _Launcher(NamedTuple):
    """The variables in which one launcher says it; rank and size must both be there."""

    name: str
    rank: str
    size: str
    local_rank: str
    local_size: str
    job: tuple[str, ...] = ()


# torchrun inside a step of the scheduler's has the last word: the first that fits.
_TORCHRUN = _Launcher("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
_MPI = (
    _Launcher(
        "Open MPI",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"),
    ),
    _Launcher(
        "MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", ("PMI_JOBID",)
    ),
    _Launcher(
        "MVAPICH",
        "MV2_COMM_WORLD_RANK",
        "MV2_COMM_WORLD_SIZE",
        "MV2_COMM_WORLD_LOCAL_RANK",
        "MV2_COMM_WORLD_LOCAL_SIZE",
    ),
)


def find_placement(environ: Mapping[str, str], parent: int = 0) -> Placement:
    """The placement that the environment tells of; alone where it tells of none.

    `parent` is the parent process, which ranks of one mpirun have in common on one machine.
    """
    job = this_job(environ)
    of_job = (_Launcher(*job.launcher),) if job.launcher else ()
    for launcher in (_TORCHRUN, *of_job, *_MPI):
        if not {launcher.rank, launcher.size} <= environ.keys():
            continue
        # A step of wandb agents: each task runs trials of its own, and their programs are no ranks.
        alone = "WANDB_SWEEP_ID" in environ and "RUNYARD_ATTEMPT" not in environ
        if launcher.name != "torchrun" and alone:
            continue
        rank, size = int(environ[launcher.rank]), int(environ[launcher.size])
        if size == 1:
            break
        local_size = _first_number(environ.get(launcher.local_size), default=size)
        return Placement(
            rank,
            size,
            int(environ.get(launcher.local_rank, rank % local_size)),
            local_size,
            environ.get("MASTER_ADDR") or ("127.0.0.1" if local_size == size else job.first_node()),
            int(environ.get("MASTER_PORT") or _port(environ, launcher, parent)),
            launcher.name,
        )
    return Placement()


def _port(environ: Mapping[str, str], launcher: _Launcher, parent: int) -> int:
    """A port that the ranks of a job find without talking, and two jobs rarely share."""
    named = [environ[name] for name in launcher.job if name in environ]
    return _FIRST_PORT + zlib.crc32("/".join(named or [str(parent)]).encode()) % _PORTS


def _first_number(text: str | None, default: int) -> int:
    # Some write '4(x2)' for four tasks on each of two nodes.
    match = re.match(r"\d+", text or "")
    return int(match[0]) if match else default
