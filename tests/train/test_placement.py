"""Which rank of how many, under each launcher."""

from __future__ import annotations

import pytest

from runyard.schedulers.slurm.inside import first_host
from runyard.train.placement import Placement, find_placement
from runyard.train.randomness import seed_of_rank

SRUN = {
    "SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "1", "SLURM_NTASKS": "8",
    "SLURM_STEP_TASKS_PER_NODE": "4(x2)", "SLURM_STEP_NODELIST": "gpu[003-004]",
    "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0",
}  # fmt: skip


def test_alone_where_nothing_is_said() -> None:
    assert find_placement({}) == Placement(0, 1, 0, 1, None, None, "none")


def test_torchrun() -> None:
    environment = {
        "RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "node1", "MASTER_PORT": "29400",
    }  # fmt: skip
    assert find_placement(environment) == Placement(3, 4, 1, 2, "node1", 29400, "torchrun")
    # torchrun inside an srun step has the last word.
    assert find_placement(SRUN | environment).launcher == "torchrun"


def test_srun() -> None:
    found = find_placement(SRUN)
    assert found[:5] == (5, 8, 1, 4, "gpu003")
    assert found.launcher == "srun"
    other_job = find_placement(SRUN | {"SLURM_JOB_ID": "78"})
    assert found.port == find_placement(SRUN | {"SLURM_PROCID": "0"}).port != other_job.port
    assert find_placement(SRUN | {"MASTER_ADDR": "other", "MASTER_PORT": "1234"})[4:6] == (
        "other",
        1234,
    )


def test_a_batch_script_with_several_tasks_is_one_process() -> None:
    """Slurm gives the script its job's SLURM_NTASKS, and no step."""
    assert find_placement({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}).size == 1


def test_each_task_with_an_agent_of_its_own_is_alone() -> None:
    assert find_placement(SRUN | {"WANDB_SWEEP_ID": "abc"}).size == 1
    assert find_placement(SRUN | {"WANDB_SWEEP_ID": "abc", "RUNYARD_ATTEMPT": "1"}).size == 8


@pytest.mark.parametrize(
    "environment",
    [
        {
            "OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4",
            "OMPI_COMM_WORLD_LOCAL_RANK": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
        },
        {"PMI_RANK": "2", "PMI_SIZE": "4", "MPI_LOCALRANKID": "2", "MPI_LOCALNRANKS": "4"},
    ],
)  # fmt: skip
def test_mpi(environment: dict[str, str]) -> None:
    found = find_placement(environment, parent=99)
    assert found[:5] == (2, 4, 2, 4, "127.0.0.1")
    assert found.port == find_placement(environment, parent=99).port


@pytest.mark.parametrize(
    ("hosts", "first"),
    [
        ("gpu[003-005,9],login1", "gpu003"),
        ("node7", "node7"),
        ("a1,a2", "a1"),
        ("c[1,3]-ib", "c1-ib"),
    ],
)
def test_the_first_host_of_a_list(hosts: str, first: str) -> None:
    assert first_host(hosts) == first


def test_seeds_differ_by_rank_and_the_first_is_the_one_given() -> None:
    assert seed_of_rank(42, 0) == 42
    seeds = {seed_of_rank(seed, rank) for seed in range(100) for rank in range(64)}
    assert len(seeds) == 6400
