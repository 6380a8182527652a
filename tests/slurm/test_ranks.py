"""Trials over several nodes: ranks that find each other, fail together, and go on together."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator

import pytest

from tests.slurm.cluster import SlurmCluster
from tests.slurm.yard import Yard, open_yard

pytestmark = pytest.mark.slurm

# What a collective does, without torch: all ranks reach rank 0 at its address, and hear the sum.
MEETS = """\
import os, signal, socket, sys, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
def total(value):
    if rank == 0:
        with socket.create_server(("", where[1])) as door:
            others = [door.accept()[0] for _ in range(size - 1)]
        value += sum(int(one.recv(64)) for one in others)
        for one in others:
            one.sendall(str(value).encode())
        return value
    for _ in range(300):
        try:
            to_zero = socket.create_connection(where)
            break
        except OSError:
            time.sleep(0.05)
    to_zero.sendall(str(value).encode())
    return int(to_zero.recv(64))
print("rank", rank, "of", size, "on", os.environ["SLURMD_NODENAME"], "local",
      os.environ["LOCAL_RANK"], "total", total(rank + 1), *sys.argv[1:], flush=True)
"""


@pytest.fixture(scope="module")
def yard(
    tmp_path_factory: pytest.TempPathFactory,
    module_environment: pytest.MonkeyPatch,
    slurm_cluster: SlurmCluster,
) -> Iterator[Yard]:
    folder = tmp_path_factory.mktemp("ranks") / "it's a place"
    with open_yard(folder, module_environment, slurm_cluster) as opened:
        yield opened


def ranks(yard: Yard, *words: str, nodes: int = 2, each: int = 2) -> tuple[str, ...]:
    return ("--distributed", "srun", "--nodes", str(nodes), "--tasks-per-node", str(each), *words)


def test_ranks_of_two_nodes_meet(yard: Yard) -> None:
    yard.write("meets.py", MEETS)
    said = yard.submit("submit", *ranks(yard), "--", "python", "meets.py", "it's")
    yard.cluster.wait_for(said["jobs"][0]["job_id"], "COMPLETED")
    found = re.findall(r"rank (\d) of 4 on (n\d) local (\d) total 10 it's", yard.logs(said))
    assert sorted(rank for rank, _, _ in found) == ["0", "1", "2", "3"]
    assert len({node for _, node, _ in found}) == 2
    assert sorted(local for _, _, local in found) == ["0", "0", "1", "1"]


def test_a_sweep_of_trials_over_two_nodes(yard: Yard) -> None:
    yard.write("meets.py", MEETS)
    file = {"program": "meets.py", "method": "grid", "parameters": {"lr": {"values": [1, 2, 3, 4]}}}
    yard.write("sweep.yaml", json.dumps(file))
    said = yard.submit(
        "sweep", "sweep.yaml", "--on", "slurm", *ranks(yard, each=1), "--agents", "2"
    )
    assert yard.ended(said["sweep"])["counts"]["finished"] == 4
    for job in said["jobs"]:
        yard.cluster.wait_for(job["job_id"], "COMPLETED")
    # Every rank had the same values, and nothing was sent around for it.
    found = re.findall(r"rank (\d) of 2 .* total 3 --lr=(\d)", yard.logs(said))
    assert sorted(found) == [(rank, lr) for rank in "01" for lr in "1234"]


DIES_ONCE = (
    MEETS
    + """
if os.environ["RUNYARD_ATTEMPT"] == "1":
    if rank == size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(120)
print("went on", rank, flush=True)
"""
)


def test_a_dead_rank_ends_the_attempt_at_once_and_it_is_tried_again(yard: Yard) -> None:
    yard.write("dies.py", DIES_ONCE)
    file = {"program": "dies.py", "method": "grid", "parameters": {"lr": {"values": [1]}},
            "runyard": {"retries": {"program": 1}}}  # fmt: skip
    yard.write("sweep.yaml", json.dumps(file))
    began = time.monotonic()
    said = yard.submit("sweep", "sweep.yaml", "--on", "slurm", *ranks(yard, each=1))
    assert yard.ended(said["sweep"])["counts"]["finished"] == 1
    assert time.monotonic() - began < 60  # The others would have slept for two minutes.
    logs = yard.logs(said)
    assert "rank 1 ended with signal 9; the others are ended" in logs
    assert sorted(re.findall(r"went on (\d)", logs)) == ["0", "1"]
