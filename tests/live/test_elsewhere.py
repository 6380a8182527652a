"""Our agent at a server that knows W&B's protocol and nothing of ours: as it would be at W&B's.

The double of W&B's cloud is our own server with its extensions switched off: every route of sweeps
and agents answers 404, and what is left is what W&B's own clients and agents use.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard.client.discover import start_server
from runyard.client.wandb_server import WandbServer
from runyard.home import Home, read_discovery
from tests.conftest import ask_runyard, end_server, run_runyard
from tests.live.sweeping import WITH_WANDB, processes_of, with_python
from tests.node.terminals import until

pytestmark = pytest.mark.live

LONG = 120.0
MAKE = (
    "mutation UpsertSweep($config: String, $project: String!) { upsertSweep(input: "
    "{config: $config, projectName: $project}) { sweep { name project { entity { name } } } } }"
)
STEER = (
    "mutation UpsertSweep($id: ID, $state: String) { upsertSweep(input: {id: $id, state: $state}) "
    "{ sweep { name } } }"
)
RUNS = (
    "query Runs($entity: String, $project: String!, $sweep: String!) { project(name: $project, "
    "entityName: $entity) { sweep(sweepName: $sweep) { id state runs { edges { node { "
    "name state historyLineCount config } } } } } }"
)
# Four steps, each saved before the next; told to save, it leaves with 75.
GOES_ON = """\
import os, signal, sys, time, wandb
from pathlib import Path
place = Path(os.environ["RUNYARD_CHECKPOINT_DIR"]) / "step"
begun = int(place.read_text()) if place.exists() else 0
told = []
signal.signal(signal.SIGUSR2, lambda *_: told.append(1))
run = wandb.init()
for step in range(begun, 4):
    run.log({"loss": step, "attempt": int(os.environ["RUNYARD_ATTEMPT"])})
    place.write_text(str(step + 1))
    Path(f"at-{step + 1}").touch()
    while step == 1 and not begun and not told:
        time.sleep(0.02)
    if told:
        sys.exit(75)
"""
# Waits for its end; the first time it is killed by its own hand, after a checkpoint.
DIES_ONCE = """\
import os, signal, wandb
from pathlib import Path
place = Path(os.environ["RUNYARD_CHECKPOINT_DIR"]) / "step"
run = wandb.init()
run.log({"loss": 1.0})
if not place.exists():
    place.write_text("1")
    os.kill(os.getpid(), signal.SIGKILL)
"""
WAITS = """\
import time, wandb
run = wandb.init()
run.log({"loss": 1.0})
time.sleep(600)
"""


class Elsewhere:
    """A server as W&B's, with a key in netrc, and a project's folder on this machine."""

    def __init__(self, server: WandbServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.path = ""

    def make(self, program: str, **config: Any) -> str:
        (self.folder / "train.py").write_text(program)
        text = json.dumps({"program": "train.py", "method": "grid", **config})
        made = self.server.graphql(MAKE, {"config": text, "project": "far"})["upsertSweep"]["sweep"]
        self.path = f"{made['project']['entity']['name']}/far/{made['name']}"
        return self.path

    def sweep(self) -> dict[str, Any]:
        entity, project, sweep = self.path.split("/")
        given = {"entity": entity, "project": project, "sweep": sweep}
        found: dict[str, Any] = self.server.graphql(RUNS, given)["project"]["sweep"]
        return found

    def runs(self) -> list[dict[str, Any]]:
        return [edge["node"] for edge in self.sweep()["runs"]["edges"]]

    def states(self) -> list[str]:
        return [run["state"] for run in self.runs()]

    def steer(self, state: str) -> None:
        self.server.graphql(STEER, {"id": self.sweep()["id"], "state": state})

    def work(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "runyard", "sweep", self.path, *words],
            cwd=self.folder,
            env={**os.environ, **with_python()},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture(scope="module")
def far(
    module_home: Home,
    tmp_path_factory: pytest.TempPathFactory,
    module_environment: pytest.MonkeyPatch,
) -> Iterator[WandbServer]:
    """The server, whose key is in netrc."""
    home = Home(tmp_path_factory.mktemp("far") / "state")
    with pytest.MonkeyPatch.context() as there:
        there.setenv("RUNYARD_ONLY_WANDB", "1")
        start_server(home)
    try:
        found = read_discovery(home)
        assert found is not None
        netrc = Path(os.environ["HOME"]) / ".netrc"
        netrc.write_text(f"machine 127.0.0.1\nlogin user\npassword {found.key}\n")
        netrc.chmod(0o600)
        module_environment.setenv("WANDB_BASE_URL", found.url)
        module_environment.setenv("WANDB_SILENT", "true")
        server = WandbServer(found.url, found.key)
        assert server.ask("/api/sweeps") is None
        yield server
    finally:
        end_server(home)


@pytest.fixture
def elsewhere(far: WandbServer, module_home: Home, tmp_path: Path) -> Iterator[Elsewhere]:
    yield Elsewhere(far, tmp_path)
    until(lambda: not processes_of(module_home, "train|node"), "nothing to be left", 180)


def test_a_sweep_elsewhere_is_worked_on_by_its_own_protocol(elsewhere: Elsewhere) -> None:
    path = elsewhere.make(
        WITH_WANDB,
        parameters={"lr": {"values": [0.1, 0.01, 0.001]}, "bs": {"value": 1}},
    )
    ended = run_runyard(
        "sweep", path, "-j", "2", cwd=elsewhere.folder, env=with_python(), timeout=LONG
    )
    assert ended.returncode == 0, ended.stderr
    assert elsewhere.states() == ["finished"] * 3
    assert [run["historyLineCount"] for run in elsewhere.runs()] == [3] * 3
    assert len({run["config"] for run in elsewhere.runs()}) == 3
    assert elsewhere.sweep()["state"] == "FINISHED"


def test_what_is_cut_off_is_announced_and_handed_out_again(elsewhere: Elsewhere) -> None:
    elsewhere.make(GOES_ON, parameters={"x": {"values": [1]}})
    working = elsewhere.work()
    until((elsewhere.folder / "at-2").exists, "the second step", 180)
    working.send_signal(signal.SIGTERM)
    _, said = working.communicate(timeout=60)
    assert "goes back (go-on)" in said
    assert elsewhere.states() == ["preempted"]
    cut = elsewhere.runs()[0]["name"]

    ended = run_runyard(
        "sweep", elsewhere.path, cwd=elsewhere.folder, env=with_python(), timeout=LONG
    )
    assert ended.returncode == 0, ended.stderr
    (run,) = elsewhere.runs()
    assert (run["name"], run["state"], run["historyLineCount"]) == (cut, "finished", 4)


def test_an_agent_in_the_background_begins_what_died_after_a_checkpoint_again(
    elsewhere: Elsewhere, module_home: Home
) -> None:
    path = elsewhere.make(DIES_ONCE, parameters={"x": {"values": [1]}})
    added = run_runyard("agents", "add", path, cwd=elsewhere.folder, env=with_python())
    assert added.returncode == 0, added.stderr
    until(lambda: elsewhere.sweep()["state"] == "FINISHED", "the sweep to end", LONG)
    assert elsewhere.states() == ["finished"]
    (log,) = (module_home.path / "agents").glob("*.log")
    until(lambda: "(attempt 2)" in log.read_text(), "the second attempt")
    assert "goes back (cut)" in log.read_text()


def test_a_cancelled_sweep_ends_its_programs_and_its_agent(elsewhere: Elsewhere) -> None:
    elsewhere.make(WAITS, parameters={"x": {"values": [1, 2, 3]}})
    working = elsewhere.work("-j", "2")
    until(lambda: elsewhere.states().count("running") == 2, "two programs", 180)
    elsewhere.steer("CANCELED")
    working.communicate(timeout=60)
    until(lambda: set(elsewhere.states()) == {"killed"}, "their ends", 180)


def test_what_is_not_there_is_said(elsewhere: Elsewhere) -> None:
    elsewhere.make(WAITS, parameters={"x": {"values": [1]}})
    asked = ask_runyard("sweep", "me/far/nothing1", cwd=elsewhere.folder)
    assert asked.returncode != 0
    assert "there is no sweep me/far/nothing1" in asked.stderr
    assert "Traceback" not in asked.stderr
