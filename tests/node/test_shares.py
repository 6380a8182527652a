"""Which GPUs there are, and what each slot has of the node."""

from __future__ import annotations

import os
import socket

import pytest

from runyard.node.devices.gpus import find_gpus
from runyard.node.devices.layout import free_port, lay_out, memory_mb
from runyard.node.devices.slot_shares import PORTS_EACH, Share, share_out, variables

CPUS = list(range(16))
MIG = "MIG-2c5ca8fe-25f5-5d3b-a1d6-6b4f4b3f7f4a"


@pytest.mark.parametrize(
    ("asked", "environ", "names"),
    [
        ("auto", {"CUDA_VISIBLE_DEVICES": "2,5"}, ("2", "5")),
        ("auto", {"CUDA_VISIBLE_DEVICES": f"GPU-1f,{MIG}"}, ("GPU-1f", MIG)),
        ("auto", {"CUDA_VISIBLE_DEVICES": ""}, ()),
        ("auto", {"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, ()),
        ("auto", {"CUDA_VISIBLE_DEVICES": "0,-1,1"}, ("0",)),
        ("auto", {"ROCR_VISIBLE_DEVICES": "0,1"}, ("0", "1")),
        ("auto", {}, ("GPU-a", "GPU-b", "GPU-c", "GPU-d")),
        ("auto", {"SLURM_JOB_GPUS": "2,3"}, ("2", "3")),
        ("auto", {"SLURM_JOB_GPUS": "0,1,2,3"}, ("GPU-a", "GPU-b", "GPU-c", "GPU-d")),
        ("0, 3", {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}, ("0", "3")),
        ("none", {"CUDA_VISIBLE_DEVICES": "0"}, ()),
    ],
)
def test_gpus_keep_the_names_they_were_given(
    asked: str, environ: dict[str, str], names: tuple[str, ...]
) -> None:
    found = find_gpus(asked, environ, lambda: ["GPU-a", "GPU-b", "GPU-c", "GPU-d"])
    assert found.names == names


def test_amds_gpus_are_told_in_amds_variable() -> None:
    found = find_gpus("auto", {"ROCR_VISIBLE_DEVICES": "0,1"}, list)
    share = share_out(found.names, CPUS, slots=None, per_gpu=1)[1]
    assert told(share, variable=found.variable)["ROCR_VISIBLE_DEVICES"] == "1"


def test_two_on_each_of_two_gpus() -> None:
    """Several GPUs in one job, each program tied to one of them, with CPUs of its own."""
    found = share_out(("0", "1"), CPUS, slots=None, per_gpu=2)
    assert [share.gpus for share in found] == [("0",), ("1",), ("0",), ("1",)]
    assert [share.cpus for share in found] == [
        (0, 1, 2, 3), (8, 9, 10, 11), (4, 5, 6, 7), (12, 13, 14, 15),
    ]  # fmt: skip
    ports = [port for share in found for port in range(share.ports[0], share.ports[1] + 1)]
    assert len(set(ports)) == 4 * PORTS_EACH


@pytest.mark.parametrize(
    ("gpus", "slots", "per_gpu", "tied"),
    [
        ("0 1", None, None, ["0", "1"]),
        ("0 1", 4, None, ["0", "1", "0", "1"]),
        ("0 1 2 3", 2, None, ["0,1", "2,3"]),
        ("0 1", 3, 2, ["0", "1", "0"]),
        ("", 3, None, ["", "", ""]),
        ("", None, 2, ["", ""]),
        ("", None, None, [""]),
        ("0", None, "auto", ["0"] * 16),
        ("0 1", 6, "auto", ["0", "1"] * 3),
    ],
)
def test_slots_and_gpus(
    gpus: str, slots: int | None, per_gpu: int | str | None, tied: list[str]
) -> None:
    found = share_out(tuple(gpus.split()), CPUS, slots=slots, per_gpu=per_gpu)
    assert [",".join(share.gpus) for share in found] == tied


def test_growing_by_itself_there_are_never_more_programs_than_cpus() -> None:
    assert len(share_out(("0", "1"), range(6), slots=None, per_gpu="auto")) == 6
    assert len(share_out(("0",), range(1), slots=None, per_gpu="auto")) == 1


def test_more_programs_than_cpus_share_them_with_one_thread_each_and_it_is_told() -> None:
    """Only who asks for it on a machine of their own gets it: jobs are refused before."""
    many = share_out(("0",), range(2), slots=None, per_gpu=8)
    assert {share.cpus for share in many} == {(0, 1)}
    assert told(many[0], together=8)["OMP_NUM_THREADS"] == "1"
    here = len(os.sched_getaffinity(0))
    lines: list[str] = []
    assert len(lay_out({"slots": str(here)}, {}, lines.append).shares) == here
    assert lines == []
    assert len(lay_out({"slots": str(here + 1)}, {}, lines.append).shares) == here + 1
    (line,) = lines
    assert line.startswith(f"{here + 1} programs at a time have {here} CPU")
    assert line.endswith(f"less than one each; -j {here} gives each a whole one")


def test_of_a_machine_with_more_cpus_a_job_shares_out_its_own() -> None:
    """By numbers that need not begin at 0, as control groups and task/affinity set them."""
    before = os.sched_getaffinity(0)
    own = max(before)
    os.sched_setaffinity(0, {own})
    try:
        (share,) = lay_out({"slots": "1"}, {}, print).shares
    finally:
        os.sched_setaffinity(0, before)
    assert share.cpus == (own,)
    assert told(share)["OMP_NUM_THREADS"] == "1"


def told(
    share: Share, *, slots: int = 4, together: int = 2, variable: str = "CUDA_VISIBLE_DEVICES",
    **environ: str,
) -> dict[str, str]:  # fmt: skip
    return variables(
        share, 3, environ, slots=slots, together=together, variable=variable, memory_mb=64_000,
        port=15001,
    )  # fmt: skip


def test_what_a_program_is_told_of_its_place() -> None:
    share = share_out(("0", MIG), CPUS, slots=None, per_gpu=2)[1]
    found = told(share)
    assert found["CUDA_VISIBLE_DEVICES"] == MIG
    assert found["RUNYARD_SLOT"] == "3"
    assert found["RUNYARD_MEMORY_MB"] == "16000"
    assert found["RUNYARD_PORTS"] == f"{share.ports[0]}-{share.ports[1]}"
    assert found["OMP_NUM_THREADS"] == found["MKL_NUM_THREADS"] == "4"
    assert found["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.45"
    assert (found["RANK"], found["WORLD_SIZE"], found["MASTER_PORT"]) == ("0", "1", "15001")


def test_what_the_user_has_set_stays() -> None:
    share = share_out(("0",), CPUS, slots=None, per_gpu=2)[0]
    found = told(share, OMP_NUM_THREADS="7", XLA_PYTHON_CLIENT_MEM_FRACTION="0.2")
    assert "OMP_NUM_THREADS" not in found
    assert "XLA_PYTHON_CLIENT_MEM_FRACTION" not in found
    assert found["MKL_NUM_THREADS"] == "8"


def test_who_has_the_machine_alone_is_left_alone() -> None:
    alone = share_out((), CPUS, slots=1, per_gpu=None)[0]
    assert told(alone, slots=1, together=1).keys() == {
        "RUNYARD_SLOT", "RUNYARD_PORTS", "RUNYARD_MEMORY_MB",
    }  # fmt: skip


@pytest.mark.parametrize("gpus", [(), ("0",), ("0", "1")])
def test_who_has_a_job_of_one_task_alone_is_no_rank(gpus: tuple[str, ...]) -> None:
    """`RANK` or `LOCAL_RANK` tells programs that a launcher started them, and there was none."""
    alone = share_out(gpus, CPUS, slots=1, per_gpu=None)[0]
    slurm = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "1", "SLURM_PROCID": "0"}
    found = told(alone, slots=1, together=1, **slurm)
    assert not found.keys() & {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}


def test_in_a_step_of_many_tasks_nobody_is_a_rank() -> None:
    alone = share_out((), CPUS, slots=1, per_gpu=None)[0]
    found = told(alone, slots=1, together=1, SLURM_JOB_ID="7", SLURM_PROCID="3")
    assert (found["RANK"], found["WORLD_SIZE"]) == ("0", "1")
    assert "OMP_NUM_THREADS" not in found


def test_a_taken_port_is_passed_over() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert free_port(port, port + 5) != port


def test_memory_is_the_least_of_what_is_said() -> None:
    machine = memory_mb({}, 4)
    assert machine is not None
    assert memory_mb({"SLURM_MEM_PER_NODE": "100"}, 4) == 100
    assert memory_mb({"SLURM_MEM_PER_CPU": "10"}, 4) == 40
    assert memory_mb({"SLURM_MEM_PER_NODE": "0"}, 4) == machine
