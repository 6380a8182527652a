"""Stock clients log to a server that speaks TLS with an authority of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.client.discover import ensure_server, start_server
from runyard.home import Home, read_discovery
from tests.conftest import end_server, isolate, run_runyard, server_pids, wait_until
from tests.environments import skip_or_fail
from tests.live.programs import curves
from tests.wandb_clients.environments import MissingClient, ensure_environment
from tests.wandb_clients.versions import VERSIONS

pytestmark = pytest.mark.clients

_TRIED = VERSIONS if os.environ.get("RUNYARD_ALL_CLIENTS") else ("0.31.0", "0.16.6")
STEPS = 5
PROGRAM = f"""\
import os, sys, wandb
run = wandb.init(project="sealed", id=sys.argv[1])
for step in range({STEPS}):
    run.log({{"value": step}})
with open("weights", "w") as file:
    file.write("x" * 100_000)
artifact = wandb.Artifact("weights", "model")
artifact.add_file("weights")
run.log_artifact(artifact)
run.finish()
found = wandb.Api().artifact("sealed/weights:latest").download("back")
assert os.path.getsize(os.path.join(found, "weights")) == 100_000
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    folder = tmp_path_factory.mktemp("tls")
    with pytest.MonkeyPatch.context() as patch:
        isolate(folder, patch)
        home = Home(folder / "state")
        start_server(home, options=["--tls"])
        try:
            yield home
        finally:
            end_server(home)


@pytest.fixture(params=_TRIED)
def client(request: pytest.FixtureRequest) -> Path:
    try:
        return ensure_environment(request.param)
    except MissingClient as missing:
        skip_or_fail(str(missing))


def test_it_logs_uploads_and_downloads_in_the_environment_of_env(
    home: Home, client: Path, tmp_path: Path
) -> None:
    run = client.parents[1].name.replace(".", "-")
    variables = json.loads(run_runyard("env", "--json").stdout)
    assert variables["WANDB_BASE_URL"].startswith("https://")
    done = _run(client, run, tmp_path, variables)
    assert done.returncode == 0, done.stdout + done.stderr
    assert curves(home, run)["value"]["values"] == list(range(STEPS))


@pytest.mark.skipif(not os.environ.get("RUNYARD_ALL_CLIENTS"), reason="RUNYARD_ALL_CLIENTS=1")
def test_without_the_authority_it_sends_nothing(home: Home, client: Path, tmp_path: Path) -> None:
    """Each client verifies: none of them has been talked out of it by our environment."""
    variables = json.loads(run_runyard("env", "--json").stdout)
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        del variables[name]
    discovery = read_discovery(home)
    assert discovery is not None
    impatient = {"WANDB_INIT_TIMEOUT": "15", "WANDB_HTTP_TIMEOUT": "5", "WANDB__SERVICE_WAIT": "60"}
    done = _run(client, "stranger", tmp_path, {**variables, **impatient}, seconds=60)
    assert done.returncode != 0
    assert "stranger" not in run_runyard("runs", "--json").stdout


PACED = f"""\
import pathlib, sys, time, wandb
run = wandb.init(project="sealed", id=sys.argv[1])
for step in range({STEPS}):
    run.log({{"value": step}})
    pathlib.Path(f"done-{{step}}").touch()
    while not pathlib.Path(f"go-{{step}}").exists():
        time.sleep(0.02)
run.finish()
"""


def test_it_goes_on_when_the_server_was_killed_and_comes_back(
    home: Home, client: Path, tmp_path: Path
) -> None:
    """What holds the port meanwhile speaks no TLS, and no client takes that for a last word."""
    run = "killed-" + client.parents[1].name.replace(".", "-")
    (tmp_path / "train.py").write_text(PACED)
    with subprocess.Popen(
        [client, "train.py", run], cwd=tmp_path, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **json.loads(run_runyard("env", "--json").stdout)},
    ) as program:  # fmt: skip
        wait_until(lambda: (tmp_path / "done-0").exists())
        for pid in server_pids(home):
            os.kill(pid, signal.SIGKILL)
        for step in range(STEPS - 1):
            (tmp_path / f"go-{step}").touch()
        wait_until(lambda: (tmp_path / f"done-{STEPS - 1}").exists())
        # The client posts every two seconds: by then it has met nobody, most likely.
        time.sleep(5)
        ensure_server(home)
        (tmp_path / f"go-{STEPS - 1}").touch()
        assert program.wait(timeout=300) == 0
    assert curves(home, run)["value"]["values"] == list(range(STEPS))


def _run(
    client: Path, run: str, folder: Path, variables: dict[str, str], seconds: float = 300
) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(PROGRAM)
    try:
        return subprocess.run(
            [client, "train.py", run], cwd=folder, env={**os.environ, **variables},
            capture_output=True, text=True, timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        return subprocess.CompletedProcess(late.cmd, 1, "", "it still tries")
