"""More of a cluster than one job's node: a shell over several, and nodes that come later."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.node.terminals import RUNYARD, Terminal, until
from tests.slurm.yard import Yard

pytestmark = pytest.mark.slurm

SAYS = """\
import os, pathlib, time
print("partition", os.environ["SLURM_JOB_PARTITION"], "node", os.environ["SLURMD_NODENAME"],
      flush=True)
"""


@pytest.fixture(scope="module")
def yard(module_yard: Yard) -> Yard:
    module_yard.write("says.py", SAYS)
    return module_yard


def test_a_shell_over_two_nodes_reaches_both(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `srun --nodes=2 --ntasks-per-node=1 --time=01:00:00 --pty bash -i`, in screen."""
    monkeypatch.chdir(yard.project)
    words = ["shell", "--nodes", "2", "--tasks-per-node", "1", "--time", "01:00:00",
             "--memory", "100M"]  # fmt: skip
    env = {"PATH": yard.cluster.env["PATH"], "SLURM_CONF": yard.cluster.env["SLURM_CONF"],
           "STY": "1.screen", "SHELL": "/bin/bash"}  # fmt: skip
    with Terminal([*RUNYARD, *words], env=env) as terminal:
        number = terminal.expect(r"Granted job allocation (\d+)")[1]
        # What is typed is echoed: the answer has other words than the question.
        terminal.type(
            "srun sh -c 'echo on:$SLURMD_NODENAME:$SLURM_NNODES' | sort | xargs echo ha''ve\n"
        )
        reached = terminal.expect(r"have on:(n\d):2 on:(n\d):2")
        assert reached[1] != reached[2]
        # Programs that ask Slurm how many they are hear of both nodes.
        terminal.type("echo nodes=$SLURM_JOB_NUM_NODES=$(scontrol show hostnames | wc -l)=\n")
        terminal.expect(r"nodes=2=2=")
        terminal.hang_up()
        again = yard.type("shell", number, "--", "srun", "hostname").stdout
        assert len(again.splitlines()) == 2
        yard.type("cancel", number)
        yard.cluster.wait_for(number, "CANCELLED")


def test_srun_in_a_shell_starts_the_tasks_that_were_asked_for(yard: Yard) -> None:
    """As in salloc. From 24.11 on srun, told of a task's CPUs alone, waited for ever."""
    words = ("--nodes", "2", "--tasks-per-node", "2", "--cpus", "2", "--memory", "100M")
    command = ("srun", "sh", "-c", "echo on:$SLURMD_NODENAME")
    said = yard.type("shell", *words, "--", *command).stdout.split()
    on_nodes = sorted(word for word in said if word.startswith("on:"))
    assert len(on_nodes) == 4
    assert on_nodes[0] == on_nodes[1] != on_nodes[2] == on_nodes[3]


@pytest.fixture
def later(yard: Yard) -> Iterator[str]:
    """A name for a partition that a site adds; it goes with the test."""
    yield "later"
    yard.cluster.cancel_jobs()
    yard.cluster.run("scontrol", "delete", "PartitionName=later")


def test_a_partition_that_is_added_serves_a_sweep_that_runs(yard: Yard, later: str) -> None:
    waits = "import pathlib, time\nwhile not pathlib.Path({!r}).exists():\n    time.sleep(0.05)\n"
    yard.write("waits.py", SAYS + waits.format(str(yard.project / "go")))
    file = {"program": "waits.py", "method": "grid", "parameters": {"lr": {"values": [1, 2]}}}
    yard.write("sweep.yaml", json.dumps(file))
    refused = yard.type("submit", "-p", later, "--", "python", "says.py", check=False)
    assert refused.returncode != 0
    assert "invalid partition" in refused.stderr.lower() + refused.stdout.lower()

    said = yard.submit("sweep", "sweep.yaml", "--on", "slurm", "--agents", "1", "--exclude", "n4")
    yard.cluster.run("scontrol", "create", f"PartitionName={later}", "Nodes=n4", "State=UP")
    listed = json.loads(yard.type("clusters", "partitions", "--json").stdout)
    assert [one["name"] for one in listed if one["name"] == later] == [later]
    added = yard.submit(
        "agents", "add", said["sweep"], "--agents", "1", "--on", "slurm", "-p", later
    )
    until(lambda: f"partition {later} node n4" in yard.logs(added), lambda: yard.logs(added))
    yard.write("go", "")
    assert yard.ended(said["sweep"])["counts"]["finished"] == 2
