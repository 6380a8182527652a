"""The server as a Slurm job: found by everybody, handed over from job to job, nothing lost."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.client.discover import find_server
from runyard.home import Discovery, Home, read_discovery
from tests.conftest import RunRunyard
from tests.live.programs import curves
from tests.live.sweeping import write_sweep
from tests.node.terminals import until
from tests.slurm.cluster import SlurmCluster

pytestmark = pytest.mark.slurm

STEPS = 12
# Logs a step whenever the test allows it: by a file that grows.
PACED = f"""\
import pathlib, time, wandb
run = wandb.init()
gate = pathlib.Path("gate")
for step in range({STEPS}):
    while int(gate.read_text() or 0) < step:
        time.sleep(0.05)
    run.log({{"value": step}})
    pathlib.Path(f"logged-{{run.id}}").write_text(str(step))
run.finish()
"""


@pytest.fixture
def on_cluster(
    slurm_cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch, state_folder: Home
) -> Iterator[SlurmCluster]:
    """Commands find this cluster; its jobs are gone after the test."""
    for name in ("PATH", "SLURM_CONF"):
        monkeypatch.setenv(name, slurm_cluster.env[name])
    try:
        yield slurm_cluster
    finally:
        slurm_cluster.cancel_jobs()


def discovered(home: Home) -> Discovery:
    found = read_discovery(home)
    assert found is not None
    return found


def serving(home: Home, not_pid: int = 0) -> bool:
    api = find_server(home)
    if api is None:
        return False
    api.close()
    return discovered(home).pid != not_pid


def test_a_sweep_logs_while_the_server_goes_from_job_to_job(
    runyard: RunRunyard, state_folder: Home, on_cluster: SlurmCluster, tmp_path: Path
) -> None:
    """The first job ends as Slurm ends jobs whose time is up: told by TERM."""
    first = submit_server(runyard, "--links", "1", "--time", "10m")
    until(lambda: serving(state_folder), "the server in its job", 180)
    before = discovered(state_folder)
    with sweep_at_work(runyard, state_folder, on_cluster, tmp_path / "project") as work:
        work.allow(4)
        on_cluster.run("scancel", "--signal=TERM", "--batch", first)
        work.allow(7)
        on_cluster.wait_for(first, {"COMPLETED", "FAILED", "CANCELLED"}, 180)
        refused = runyard("runs")
        assert (refused.returncode, "is a Slurm job" in refused.stderr) == (1, True)
        with taken(before.port):  # By somebody else on the node.
            submit_server(runyard, "--links", "1", "--time", "10m")
            until(lambda: serving(state_folder, before.pid), "the server in its next job", 180)
        after = discovered(state_folder)
        assert (after.key, after.port != before.port) == (before.key, True)
        work.finish()
    assert runyard("server", "stop").returncode == 0
    assert runyard("server", "start").returncode == 0


@pytest.mark.skipif(
    not os.environ.get("RUNYARD_LONG_JOBS"), reason="RUNYARD_LONG_JOBS=1: two minutes"
)
def test_cut_by_its_time_limit_the_server_is_taken_over_by_the_next_link(
    runyard: RunRunyard, state_folder: Home, on_cluster: SlurmCluster, tmp_path: Path
) -> None:
    first = submit_server(runyard, "--links", "2", "--time", "1m")
    until(lambda: serving(state_folder), "the server in its job", 180)
    before = discovered(state_folder)
    with sweep_at_work(runyard, state_folder, on_cluster, tmp_path / "project") as work:
        work.allow(4)
        on_cluster.wait_for(first, {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"}, 180)
        work.allow(7)
        until(lambda: serving(state_folder, before.pid), "the server in its next job", 180)
        work.finish()
    assert runyard("server", "stop").returncode == 0


def test_a_next_link_takes_over_a_server_that_is_still_serving(
    runyard: RunRunyard, state_folder: Home, on_cluster: SlurmCluster
) -> None:
    assert runyard("server", "start").returncode == 0
    before = discovered(state_folder)
    job = submit_server(runyard, "--links", "1", "--time", "10m")
    until(lambda: serving(state_folder, before.pid), "the server in its job", 180)
    after = discovered(state_folder)
    assert (after.key, after.port, after.listen) == (before.key, before.port, "cluster")
    shown = runyard("server", "status")
    assert f"it is a Slurm job: {job} running" in shown.stdout
    again = runyard("server", "submit")
    assert (again.returncode, "is a job already" in again.stderr) == (1, True)
    assert (runyard("server", "restart").returncode) == 1
    # Nothing that Slurm keeps or shows, and nothing on the node's list of processes, has the key.
    record = on_cluster.run("scontrol", "show", "job", job).stdout
    script = on_cluster.run("scontrol", "write", "batch_script", job, "-").stdout
    listed = on_cluster.run("ps", "-A", "-ww", "-o", "args").stdout
    assert "runyard-server" in record
    assert after.key not in record + script + listed


def submit_server(runyard: RunRunyard, *words: str) -> str:
    done = runyard("server", "submit", "--json", *words)
    assert done.returncode == 0, done.stderr
    first: str = json.loads(done.stdout)["jobs"][0]
    return first


class Paced:
    """A sweep of two trials at work in a job, which log as far as they are allowed to."""

    def __init__(self, home: Home, cluster: SlurmCluster, folder: Path, key: int, job: str) -> None:
        self._home, self._cluster, self._folder = home, cluster, folder
        self._key, self._job = key, job

    def allow(self, steps: int) -> None:
        """Let them log so many, and see that they have."""
        (self._folder / "gate").write_text(str(steps))
        until(lambda: _logged(self._folder) == [steps] * 2, f"{steps} steps", 180)

    def finish(self) -> None:
        """Let them come to their end; nothing of what they logged is missing."""
        (self._folder / "gate").write_text(str(STEPS))
        self._cluster.wait_for(self._job, "COMPLETED", 180)
        api = find_server(self._home)
        assert api is not None
        trials = api.sweeps.trials(self._key)
        assert [trial["state"] for trial in trials] == ["finished", "finished"]
        for trial in trials:
            found = curves(self._home, trial["id"])["value"]
            assert found["values"] == list(range(STEPS))


@contextlib.contextmanager
def sweep_at_work(
    runyard: RunRunyard, home: Home, cluster: SlurmCluster, folder: Path
) -> Iterator[Paced]:
    file = write_sweep(folder, PACED, parameters={"x": {"values": [1, 2]}})
    (folder / "gate").write_text("0")
    made = runyard("sweep", "--no-run", "--json", str(file), cwd=folder)
    assert made.returncode == 0, made.stderr
    key = json.loads(made.stdout)["key"]
    words = [sys.executable, "-m", "runyard.node.agent", "--sweep", str(key), "--slots", "2"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    script = (
        f"export RUNYARD_HOME={shlex.quote(str(home.path))} PATH={shlex.quote(path)}\n"
        f"exec {shlex.join([*words, '--folder', str(folder)])}\n"
    )
    yield Paced(home, cluster, folder, key, cluster.submit(script))


@contextlib.contextmanager
def taken(port: int) -> Iterator[None]:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        yield


def _logged(folder: Path) -> list[int]:
    return [int(path.read_text() or -1) for path in sorted(folder.glob("logged-*"))]
