"""A server that nodes of a cluster reach, and what is said where they do not."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

import pytest

from runyard.client.discover import ensure_server
from runyard.clusters.profile import Profile
from runyard.home import Discovery, Home, read_discovery
from runyard.launch.serving import server_for_jobs
from tests.conftest import RunRunyard
from tests.environments import skip_or_fail
from tests.live.programs import LOG_STEPS, curves, list_runs, start_run, write_program
from tests.live.sweeping import WITHOUT_WANDB, write_sweep
from tests.node.terminals import until
from tests.server.asgi import basic

pytestmark = pytest.mark.live


def discovered(home: Home) -> Discovery:
    found = read_discovery(home)
    assert found is not None
    return found


def test_a_server_is_opened_under_a_program_that_logs(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    ensure_server(state_folder)
    before = discovered(state_folder)
    program = write_program(tmp_path / "project", LOG_STEPS)
    with start_run(program, "40", "20") as process:
        until(lambda: [run for run in list_runs(runyard) if run["steps"]], "the first rows")
        said: list[str] = []
        found = server_for_jobs(state_folder, Profile(), said.append)
        after = discovered(state_folder)
        assert (after.key, after.port) == (before.key, before.port)
        if after.listen == "127.0.0.1":
            skip_or_fail("this machine has no address besides its loopback")
        assert said == [
            f"the server listens to the cluster now, at {after.url} (state in {state_folder.path})"
        ]
        host = after.url.split("//")[1].rpartition(":")[0]
        assert host not in ("127.0.0.1", "localhost")
        assert found.api.health()["home"] == str(state_folder.path)
        again = server_for_jobs(state_folder, Profile(), said.append)
        assert (again.started, len(said)) == (False, 1)
        assert process.wait(timeout=180) == 0
    (run,) = list_runs(runyard)
    assert (run["state"], run["exit_code"]) == ("finished", 0)
    assert curves(state_folder, run["id"])["value"]["steps"] == list(range(40))
    # Who is on the cluster's network without the key gets nothing.
    connection = HTTPConnection(host, after.port, timeout=90)
    connection.request("GET", "/api/health", headers={"Authorization": basic("0" * 40)})
    assert connection.getresponse().status == 401
    connection.close()


@pytest.fixture
def lonely_node() -> list[str]:
    """Words that run a command as on another node, with another name and no network at all."""
    words = ["unshare", "--map-root-user", "--net", "--uts", "sh", "-c",
             'hostname n9 2>/dev/null; exec "$@"', "n9"]  # fmt: skip
    if shutil.which("unshare") is None or subprocess.run([*words, "true"], check=False).returncode:
        skip_or_fail("namespaces of one's own are not allowed here")
    return words


@pytest.mark.parametrize("opened", [False, True])
def test_an_agent_that_reaches_no_server_says_so_in_its_log_and_on_status(
    opened: bool, runyard: RunRunyard, state_folder: Home, tmp_path: Path, lonely_node: list[str]
) -> None:
    if opened:
        assert runyard("server", "start", "--listen", "cluster").returncode == 0
    file = write_sweep(tmp_path / "project", WITHOUT_WANDB, parameters={"x": {"values": [1]}})
    made = runyard("sweep", "--no-run", "--json", str(file), cwd=file.parent)
    key = json.loads(made.stdout)["key"]
    agent = [sys.executable, "-m", "runyard.node.agent", "--sweep", str(key)]
    done = subprocess.run(
        [*lonely_node, *agent], capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "RUNYARD_REACH_SECONDS": "1", "SLURM_JOB_ID": "77"},
    )  # fmt: skip
    assert done.returncode == 1
    here = socket.gethostname()
    url = discovered(state_folder).url
    why = f"does not reach the server at {url}" if opened else f"listens on {here} alone"
    assert why in done.stderr
    # One that is open to nodes already is not opened once more: something is between them.
    mends = ("runyard server restart --listen cluster", "runyard server submit")
    assert [mend in done.stderr for mend in mends] == [not opened, opened]
    shown = runyard("status")
    assert why in shown.stdout + shown.stderr
    assert "n9" in shown.stdout + shown.stderr
    assert "job 77" in shown.stdout + shown.stderr


def test_an_agent_that_sees_no_state_folder_says_what_to_share(
    state_folder: Home, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "runyard.node.agent", "--sweep", "1"],
        capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "RUNYARD_HOME": str(tmp_path / "away"), "RUNYARD_REACH_SECONDS": "1"},
    )  # fmt: skip
    assert done.returncode == 1
    assert "is the state folder on storage that the nodes share?" in done.stderr
    assert not (tmp_path / "away" / "server.lock").exists()  # And no server was started there.
