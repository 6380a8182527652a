"""Which rank of how many this process is, as its launcher tells it in the environment."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from typing import NamedTuple

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


# The first that fits. torchrun inside an srun step has the last word, hence first.
_LAUNCHERS = (
    _Launcher("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    # The step's size: a batch script's own SLURM_NTASKS would count tasks that were never started.
    _Launcher(
        "srun",
        "SLURM_PROCID",
        "SLURM_STEP_NUM_TASKS",
        "SLURM_LOCALID",
        "SLURM_STEP_TASKS_PER_NODE",
        ("SLURM_JOB_ID", "SLURM_STEP_ID"),
    ),
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


def find_placement(environment: Mapping[str, str], parent: int = 0) -> Placement:
    """The placement that the environment tells of; alone where it tells of none.

    `parent` is the parent process, which ranks of one mpirun have in common on one machine.
    """
    for launcher in _LAUNCHERS:
        if not {launcher.rank, launcher.size} <= environment.keys():
            continue
        # `srun wandb agent`: each task runs trials of its own, and their programs are no ranks.
        alone = "WANDB_SWEEP_ID" in environment and "RUNYARD_ATTEMPT" not in environment
        if launcher.name != "torchrun" and alone:
            continue
        rank, size = int(environment[launcher.rank]), int(environment[launcher.size])
        if size == 1:
            break
        local_size = _first_number(environment.get(launcher.local_size), default=size)
        return Placement(
            rank,
            size,
            int(environment.get(launcher.local_rank, rank % local_size)),
            local_size,
            environment.get("MASTER_ADDR") or _master(environment, local_size == size),
            int(environment.get("MASTER_PORT") or _port(environment, launcher, parent)),
            launcher.name,
        )
    return Placement()


def first_host(hosts: str) -> str:
    """The first host of a list as Slurm writes it: 'gpu[003-005,9],login1' is 'gpu003'."""
    found = re.match(r"([^\[,]*)(?:\[([^\],-]+)[^\]]*\]([^,]*))?", hosts)
    if found is None:
        return hosts
    return (found[1] or "") + (found[2] or "") + (found[3] or "")


def _master(environment: Mapping[str, str], one_machine: bool) -> str | None:
    hosts = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST")
    if one_machine:
        return "127.0.0.1"
    return first_host(hosts) if hosts else None


def _port(environment: Mapping[str, str], launcher: _Launcher, parent: int) -> int:
    """A port that the ranks of a job find without talking, and two jobs rarely share."""
    named = [environment[name] for name in launcher.job if name in environment]
    return _FIRST_PORT + zlib.crc32("/".join(named or [str(parent)]).encode()) % _PORTS


def _first_number(text: str | None, default: int) -> int:
    # Slurm writes '4(x2)' for four tasks on each of two nodes.
    found = re.match(r"\d+", text or "")
    return int(found[0]) if found else default
