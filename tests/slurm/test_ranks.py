"""Trials over several nodes: ranks that find each other, fail together, and go on together."""

from __future__ import annotations

import json
import os
import re
import signal
import sys

import pytest

from tests.slurm.yard import Yard

pytestmark = pytest.mark.slurm

LONG = os.environ.get("RUNYARD_LONG_JOBS") == "1"

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
      os.environ["LOCAL_RANK"], "total", total(rank + 1), "at", where[1], *sys.argv[1:], flush=True)
"""


@pytest.fixture(scope="module")
def yard(quoted_yard: Yard) -> Yard:
    return quoted_yard


def ranks(yard: Yard, *words: str, nodes: int = 2, each: int = 2) -> tuple[str, ...]:
    return ("--distributed", "srun", "--nodes", str(nodes), "--tasks-per-node", str(each), *words)


def test_ranks_of_two_nodes_meet(yard: Yard) -> None:
    yard.write("meets.py", MEETS)
    said = yard.submit(
        "submit", *ranks(yard), "--variable", "SLURM_LABELIO=1", "--", "python", "meets.py", "it's"
    )
    yard.cluster.wait_for(said["jobs"][0]["job_id"], "COMPLETED")
    found = re.findall(
        # Slurm itself labels every line, where it is asked to.
        r"\t(\d): rank \1 of 4 on (n\d) local (\d) total 10 at \d+ it's",
        yard.logs(said),
    )
    assert sorted(rank for rank, _, _ in found) == ["0", "1", "2", "3"]
    assert len({node for _, node, _ in found}) == 2
    assert sorted(local for _, _, local in found) == ["0", "0", "1", "1"]


def test_ranks_have_their_variables_where_jobs_begin_without_any(yard: Yard) -> None:
    """Some sites want `--export=NONE`: srun would do the same."""
    yard.write("meets.py", MEETS)
    words = ranks(yard, "--sbatch=--export=NONE")
    said = yard.submit("submit", *words, "--", "python", "meets.py")
    yard.cluster.wait_for(said["jobs"][0]["job_id"], "COMPLETED")
    found = re.findall(r"rank (\d) of 4 on n\d local \d total 10", yard.logs(said))
    assert sorted(found) == ["0", "1", "2", "3"], yard.logs(said)


# Two trials at a time are in two jobs on the same nodes: neither leaves before both have met.
MEETS_BESIDE = (
    MEETS
    + """
here, beside = int(sys.argv[1].partition("=")[2]), os.path.dirname(os.path.abspath(__file__))
if rank == 0:
    open(f"{beside}/met-{here}", "w").close()
while not os.path.exists(f"{beside}/met-{here ^ 1}"):
    time.sleep(0.02)
"""
)


def test_two_jobs_on_the_same_nodes_at_once_never_take_the_same_port(yard: Yard) -> None:
    """RUNYARD_LONG_JOBS=1: twenty times, instead of three."""
    trials = 2 * (20 if LONG else 3)
    yard.write("beside.py", MEETS_BESIDE)
    values = list(range(trials))
    file = {"program": "beside.py", "method": "grid", "parameters": {"n": {"values": values}}}
    yard.write("sweep.yaml", json.dumps(file))
    said = yard.submit(
        "sweep", "sweep.yaml", "--on", "slurm", *ranks(yard, each=1), "--agents", "2",
        "--exclude", "n3,n4",
    )  # fmt: skip
    assert yard.ended(said["sweep"], 60 + 15 * trials)["counts"]["finished"] == trials
    for job in said["jobs"]:
        yard.cluster.wait_for(job["job_id"], "COMPLETED", 180)  # And no rank waits for more.
    # Every rank had the same values, and nothing was sent around for it.
    found = re.findall(r"rank (\d) of 2 .* total 3 at (\d+) --n=(\d+)", yard.logs(said))
    assert sorted((rank, int(n)) for rank, _, n in found) == [(r, n) for r in "01" for n in values]
    ports = {int(n): port for _, port, n in found}
    assert [n for n in values if ports[n] == ports[n ^ 1]] == []


# The last rank leaves the first attempt in the middle; the first one is in it as long as it may.
LEAVES = (
    MEETS
    + """
how, folder = sys.argv[1].partition("=")[2], os.environ["RUNYARD_CHECKPOINT_DIR"]
def note(name):
    open(f"{folder}/{name}", "w").close()
if os.environ["RUNYARD_ATTEMPT"] == "1":
    note(f"pid-{rank}-{os.getpid()}")
    note(f"there-{rank}")
    if rank == size - 1:
        while not os.path.exists(f"{folder}/there-0"):
            time.sleep(0.02)
        print("rank", rank, "leaves", how, "at", time.time(), flush=True)
        note("left")
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        sys.exit(75)
    while how == "killed" or not os.path.exists(f"{folder}/left"):
        time.sleep(0.02)
    time.sleep(1.5)
    note("saved")
    sys.exit(75)
pids = [one.split("-")[2] for one in os.listdir(folder) if one.startswith("pid-")]
print("went on", how, rank, "left", [one for one in pids if os.path.exists(f"/proc/{one}")],
      "saved", os.path.exists(f"{folder}/saved"), flush=True)
"""
)


def test_a_dead_rank_ends_the_attempt_and_ranks_that_go_on_are_waited_for(yard: Yard) -> None:
    yard.write("leaves.py", LEAVES)
    file = {"program": "leaves.py", "method": "grid",
            "parameters": {"how": {"values": ["killed", "go-on"]}},
            "runyard": {"retries": {"program": 1}}}  # fmt: skip
    yard.write("sweep.yaml", json.dumps(file))
    said = yard.submit(
        "sweep", "sweep.yaml", "--on", "slurm", *ranks(yard, each=1), "--agents", "2"
    )
    assert yard.ended(said["sweep"], 180)["counts"]["finished"] == 2
    logs = yard.logs(said)
    assert "rank 1 ended with signal 9; the others are ended" in logs
    # No process of the first attempt is left when the second begins, on any node.
    found = re.findall(r"went on (\S+) (\d) left \[\] saved (\w+)", logs)
    assert sorted(found) == [
        ("go-on", "0", "True"), ("go-on", "1", "True"),
        ("killed", "0", "False"), ("killed", "1", "False"),
    ]  # fmt: skip

    ends = {
        trial["values"]["how"]: yard.api.run(trial["id"])["attempts"][0]
        for trial in yard.api.sweeps.trials(yard.api.sweeps.find(said["sweep"])["key"])
    }
    assert (ends["go-on"]["exit_code"], ends["go-on"]["cause"]) == (75, "go-on")
    assert ends["killed"]["exit_code"] == 128 + signal.SIGKILL
    (killed_at,) = re.findall(r"rank 1 leaves killed at (\S+)", logs)
    after = (ends["killed"]["ended_at"] or 0.0) - float(killed_at)
    print(f"the attempt ended {after:.2f} s after its rank was killed")
    assert 0 < after < 10  # By the recorded times: the guide promises it.


def test_ranks_have_their_variables_where_a_site_exports_none(yard: Yard) -> None:
    """With sbatch's --export=NONE, srun in the job passes nothing on unless it is told to."""
    yard.write("meets.py", MEETS)
    said = yard.submit(
        "submit", *ranks(yard), "--sbatch=--export=NONE", "--", sys.executable, "meets.py", "none"
    )
    yard.cluster.wait_for(said["jobs"][0]["job_id"], "COMPLETED")
    assert sorted(re.findall(r"rank (\d) of 4 .* total 10 ", yard.logs(said))) == list("0123")
