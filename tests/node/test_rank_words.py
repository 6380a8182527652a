"""How each way of starting ranks calls the program, and what ranks find in their environment."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.node.ranks.launchers import (
    Meeting,
    NotPython,
    count_gpus,
    program_words,
    rank_variables,
)
from runyard.node.ranks.ports import Port, address, is_free, listen
from runyard.schedulers.inside import this_job

TWO = Meeting(2, "gpu003", 23456, "77.1.ab")
ONE = Meeting(1, "gpu003", 23456, "77.1.ab")


def words(form: str, *command: str, meeting: Meeting = TWO, node: int = 1) -> list[str]:
    return program_words(form, command, meeting, node=node, processes=4)


def test_a_step_that_was_entered_does_not_limit_the_step_of_the_ranks() -> None:
    entered = {
        "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": "n1", "SLURM_NNODES": "1",
        "SLURM_JOB_NODELIST": "n1", "SLURM_CPU_BIND": "quiet", "PATH": "/bin",
    }  # fmt: skip
    assert this_job(entered).step_environ() == {"SLURM_JOB_ID": "7", "PATH": "/bin"}
    batch = {"SLURM_JOB_ID": "7", "SLURM_NNODES": "2"}
    assert this_job(batch).step_environ() == batch
    # sbatch --export=NONE: tasks of srun would have none of our variables.
    assert this_job({**batch, "SLURM_EXPORT_ENV": "NONE"}).step_environ() == batch


def test_torchrun_meets_at_the_first_node_and_restarts_up_to_three_times() -> None:
    assert words("torchrun", "/usr/bin/env", "python3.11", "-u", "train.py", "--lr=1") == [
        "/usr/bin/env", "python3.11", "-m", "torch.distributed.run", "--nnodes=2",
        "--rdzv-id=77.1.ab", "--rdzv-backend=c10d", "--rdzv-endpoint=gpu003:23456",
        "--nproc-per-node=4", "--max-restarts=3", "-u", "train.py", "--lr=1",
    ]  # fmt: skip


def test_on_one_node_torchrun_stands_alone() -> None:
    found = words("torchrun", "python", "train.py", meeting=ONE)
    assert "--standalone" in found
    assert not [word for word in found if "rdzv" in word]


def test_torchrun_takes_a_program_that_is_not_python_as_well() -> None:
    found = words("torchrun", "./train", "x")
    assert found[0] == "torchrun"
    assert found[-3:] == ["--no-python", "./train", "x"]


@pytest.mark.parametrize(
    "given",
    [
        ["--num_nodes", "7", "--lr=1", "--devices=9"],
        ["--num_nodes=1", "--devices", "1", "--num_nodes=3", "--lr=1"],
        ["--lr=1"],
    ],
)
def test_lightning_has_the_counts_as_options_in_place_of_earlier_ones(given: list[str]) -> None:
    found = words("lightning", "python", "train.py", *given)
    assert found == ["python", "train.py", "--lr=1", "--num_nodes=2", "--devices=4"]


def test_the_programs_own_spelling_stays() -> None:
    found = words("lightning", "python", "train.py", "--num-nodes=9", "--gpus", "1")
    assert found[2:] == ["--num-nodes=2", "--gpus=4"]


@pytest.mark.parametrize("form", ["lightning", "accelerate"])
def test_a_command_that_is_not_python_is_refused_where_python_is_needed(form: str) -> None:
    with pytest.raises(NotPython, match=r"'\./train' is none"):
        words(form, "./train")


def test_accelerate_knows_its_machine() -> None:
    found = words("accelerate", "python", "train.py")
    assert found[:3] == ["python", "-m", "accelerate.commands.launch"]
    assert {"--num_machines=2", "--num_processes=8", "--machine_rank=1"} <= set(found)
    assert {"--main_process_ip=gpu003", "--main_process_port=23456"} <= set(found)


def test_a_line_of_a_list_stays_the_shells() -> None:
    line = "'/my envs/bin/python' train.py \"$SLURM_TMPDIR/x y\""
    shell, dash, found = words("torchrun", "/bin/sh", "-c", line)
    assert (shell, dash) == ("/bin/sh", "-c")
    assert found.startswith("'/my envs/bin/python' -m torch.distributed.run --nnodes=2 ")
    assert found.endswith(' --max-restarts=3 train.py "$SLURM_TMPDIR/x y"')
    found = words("lightning", "sh", "-c", "A=1 python train.py --devices 9 --lr=1")[2]
    assert found == "A=1 python train.py --lr=1 --num_nodes=2 --devices=4"
    # What is more than a call of Python is not looked into.
    assert words("torchrun", "sh", "-c", "cd x && python t.py")[0] == "torchrun"


@pytest.mark.parametrize("form", ["srun", "mpi"])
def test_plain_ranks_are_called_as_they_are(form: str) -> None:
    assert words(form, "./train", "x") == ["./train", "x"]


def test_ranks_come_from_slurms_variables() -> None:
    slurm = {"SLURM_PROCID": "5", "SLURM_LOCALID": "1", "SLURM_NTASKS": "8", "SLURM_NODEID": "1"}
    found = rank_variables("srun", slurm, TWO, "ib0")
    assert [found[name] for name in ("RANK", "WORLD_RANK", "LOCAL_RANK", "WORLD_SIZE")] == [
        "5", "5", "1", "8",
    ]  # fmt: skip
    assert (found["MASTER_ADDR"], found["MASTER_PORT"]) == ("gpu003", "23456")
    assert found["NCCL_SOCKET_IFNAME"] == "ib0"
    assert found["TORCH_NCCL_ASYNC_ERROR_HANDLING"] == "1"
    assert found["NCCL_ASYNC_ERROR_HANDLING"] == "1"  # Before torch 2.2.
    # torchrun counts its own; and what the user has set stays.
    assert "RANK" not in rank_variables("torchrun", slurm, TWO, None)
    mine = rank_variables("srun", slurm | {"NCCL_SOCKET_IFNAME": "eth1"}, TWO, "ib0")
    assert "NCCL_SOCKET_IFNAME" not in mine


@pytest.mark.parametrize(
    ("environ", "count"),
    [
        ({"CUDA_VISIBLE_DEVICES": "0,1,3"}, 3),
        ({"CUDA_VISIBLE_DEVICES": "MIG-1,MIG-2"}, 2),
        ({"CUDA_VISIBLE_DEVICES": ""}, 0),
        ({"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, 0),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, 0),
        ({"CUDA_VISIBLE_DEVICES": "0,1", "SLURM_GPUS_ON_NODE": "4"}, 2),
        ({"ROCR_VISIBLE_DEVICES": "0,1"}, 2),
        ({"SLURM_GPUS_ON_NODE": "4"}, 4),
        ({"SLURM_JOB_GPUS": "0,2"}, 2),
        ({}, 8),
    ],
)
def test_gpus_are_counted_as_the_node_shows_them(environ: dict[str, str], count: int) -> None:
    assert count_gpus(environ, lambda: [str(number) for number in range(8)]) == count


def test_no_two_attempts_on_a_machine_have_one_port() -> None:
    with contextlib.ExitStack() as held:
        numbers = {held.enter_context(Port((23000, 23029))).number for _ in range(20)}
        assert len(numbers) == 20
        # Another process of ours keeps away from them too.
        ask = "from runyard.node.ranks.ports import Port; print(Port((23000, 23029)).number)"
        asked = [sys.executable, "-c", ask]
        done = subprocess.run(asked, capture_output=True, text=True, check=True)
        assert int(done.stdout) not in numbers


def test_a_port_is_given_back_however_its_holder_ends_and_leaves_no_file(tmp_path: Path) -> None:
    take = (
        "import time; from runyard.node.ranks.ports import Port; "
        "held = Port((23040, 23040)); print(held.number, flush=True); time.sleep(600)"
    )
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", take], stdout=subprocess.PIPE, text=True, env=environ
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "23040\n"
        with pytest.raises(OSError, match="no free port"):
            Port((23040, 23040))
        holder.kill()
    with Port((23040, 23040)) as again:
        assert again.number == 23040
    assert not list(tmp_path.iterdir())


def test_a_door_is_opened_only_where_no_rank_is_about_to_listen() -> None:
    with Port((23050, 23051)) as claimed, listen((23050, 23051)) as door:
        assert {door.getsockname()[1], claimed.number} == {23050, 23051}
        with pytest.raises(OSError, match="no free port between 23050 and 23051"):
            listen((23050, 23051))


def test_a_port_in_use_is_not_free_and_a_range_without_one_is_told() -> None:
    import socket

    with socket.create_server(("", 0)) as taken:
        number = taken.getsockname()[1]
        assert not is_free(number)
        with pytest.raises(OSError, match=f"no free port between {number} and {number}"):
            Port((number, number))


def test_the_address_is_that_of_the_interface_where_one_is_named() -> None:
    import socket

    assert address("lo", None) == "127.0.0.1"
    assert address("no-such", None) == socket.gethostname()
    assert address(None, "-nowhere-at-all") == socket.gethostname()
