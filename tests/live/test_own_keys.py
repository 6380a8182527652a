"""Programs have keys of their own: none of them finds the state folder's in its environment."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runyard.client.discover import ensure_server, restart_server
from runyard.home import Discovery, Home, prepare, read_discovery, write_discovery
from tests.conftest import run_runyard
from tests.live.sweeping import api_of, started_sweep, with_python, write_sweep
from tests.node.terminals import until

pytestmark = pytest.mark.live

LONG = 180.0  # A guard against a hang, never a measure.
# Leaves its environment behind, and logs a row with the stock client.
TELLS_ALL = """\
import json, os, sys, wandb
told = os.environ["TELL"] + "." + str(os.getpid())
with open("aside." + str(os.getpid()), "w") as file:
    json.dump(dict(os.environ), file)
os.replace(file.name, told)
with wandb.init(settings=wandb.Settings(silent=True)) as run:
    run.log({"loss": 1.0})
"""
INLINE = """\
import json, os, runyard, wandb
def train():
    with wandb.init(settings=wandb.Settings(silent=True)) as run:
        with open(os.environ["TELL"] + ".inline", "w") as file:
            json.dump(dict(os.environ), file)
        run.log({"loss": 1.0})
runyard.sweep({"method": "grid", "parameters": {"lr": {"values": [1]}}}, train, project="inline")
"""


@pytest.fixture(autouse=True)
def _one_server(module_home: Home) -> None:
    """All tests of this module share a server."""


@pytest.fixture
def tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where programs write down what they see."""
    for name, value in with_python().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TELL", str(tmp_path / "seen"))
    (tmp_path / "train.py").write_text(TELLS_ALL)
    return tmp_path


def _seen(folder: Path) -> list[dict[str, str]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("seen.*"))]


def _discovery(home: Home) -> Discovery:
    discovery = read_discovery(home)
    assert discovery is not None
    return discovery


def _status(url: str, key: str, path: str, method: str = "GET", content: Any = None) -> int:
    login = base64.b64encode(f"api:{key}".encode()).decode()
    body = None if content is None else json.dumps(content).encode()
    headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}
    request = urllib.request.Request(url + path, body, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=LONG) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def _check(home: Home, environment: dict[str, str], kind: str) -> None:
    """It has a key of its own, which is listed, reads runs and cannot administer."""
    own = _discovery(home)
    assert own.key not in "\n".join(environment.values())
    key = environment["WANDB_API_KEY"]
    assert _status(own.url, key, "/api/runs") == 200
    for method, path, content in (
        ("GET", "/api/keys", None),
        ("POST", "/api/keys", {"label": "mine"}),
        ("POST", "/api/users", {"name": "mallory"}),
        ("POST", "/api/login/codes", {}),
        ("POST", "/api/server/stop", {}),
    ):
        assert _status(own.url, key, path, method, content) == 403, path
    assert kind in {each["kind"] for each in api_of(home).people.list_keys()}


def test_a_run_has_a_key_of_its_own(module_home: Home, tells: Path) -> None:
    done = run_runyard("run", "-e", "alone", "--", sys.executable, "train.py", cwd=tells)
    assert done.returncode == 0, done.stderr
    (environment,) = _seen(tells)
    _check(module_home, environment, "run")
    assert "run alone" in {key["label"] for key in api_of(module_home).people.list_keys()}
    assert api_of(module_home).run("alone")["steps"] == 1


def test_a_sweeps_trials_have_the_key_of_their_agent(module_home: Home, tells: Path) -> None:
    file = write_sweep(tells, TELLS_ALL, parameters={"lr": {"values": [1, 2]}})
    done = run_runyard("sweep", str(file), cwd=tells, timeout=LONG)
    assert done.returncode == 0, done.stderr
    first, second = _seen(tells)
    _check(module_home, first, "run")
    assert first["WANDB_API_KEY"] == second["WANDB_API_KEY"]
    # The agent has gone, and so does its key.
    (key,) = [
        key
        for key in api_of(module_home).people.list_keys()
        if key["label"].startswith("sweep agent on ")
    ]
    assert key["expires_at"] is not None
    assert key["expires_at"] < time.time() + 3600


def test_a_farms_lines_have_one(module_home: Home, tells: Path) -> None:
    (tells / "tasks.txt").write_text(f"{sys.executable} train.py\n")
    done = run_runyard("farm", "tasks.txt", cwd=tells, timeout=LONG)
    assert done.returncode == 0, done.stderr
    (environment,) = _seen(tells)
    _check(module_home, environment, "run")


def test_a_function_in_a_program_has_one(module_home: Home, tells: Path) -> None:
    (tells / "inline.py").write_text(INLINE)
    done = subprocess.run(
        [sys.executable, "inline.py"], cwd=tells, timeout=LONG, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (environment,) = _seen(tells)
    own = _discovery(module_home)
    assert own.key not in environment.values()
    assert _status(own.url, environment["WANDB_API_KEY"], "/api/runs") == 401  # It is over.


def test_a_shell_has_one(module_home: Home, tells: Path) -> None:
    environment = json.loads(run_runyard("env", "--json").stdout)
    _check(module_home, environment, "shell")


def test_an_agent_whose_key_is_revoked_gets_another(module_home: Home, tells: Path) -> None:
    """And what it begins then has the new one; its sweep is not disturbed."""
    waits = TELLS_ALL + "import time\nwhile not os.path.exists('go'): time.sleep(0.1)\n"
    file = write_sweep(tells, waits, parameters={"lr": {"values": [1, 2, 3]}})
    with started_sweep(module_home, str(file), cwd=tells) as process:
        until(lambda: len(_seen(tells)) == 1, "the first trial begins")
        assert "revoked" in run_runyard("users", "keys", "revoke", "--kind", "run").stdout
        (tells / "go").touch()
        assert process.wait(LONG) == 0
    keys = {environment["WANDB_API_KEY"] for environment in _seen(tells)}
    own = _discovery(module_home)
    assert len(_seen(tells)) == 3
    assert len(keys) == 2
    assert own.key not in keys
    (sweep,) = api_of(module_home).sweeps.sweeps(limit=1)
    assert sweep["state"] == "finished"


def test_what_agents_come_with_administers_nothing(module_home: Home, tells: Path) -> None:
    """A node works with a key for runs alone: the owner's is of no use to it."""
    own = _discovery(module_home)
    (nodes,) = [key for key in api_of(module_home).people.list_keys() if key["kind"] == "nodes"]
    assert nodes["scope"] == "runs"
    _check(module_home, {"WANDB_API_KEY": own.node_key}, "nodes")
    file = write_sweep(tells, TELLS_ALL, parameters={"lr": {"values": [1]}})
    sweep = api_of(module_home).sweeps.create(file.read_text(), project="nodes", folder=str(tells))
    # What a node sees of the state folder; the owner's key in it opens nothing.
    seen = Home(tells / "state")
    prepare(seen)
    write_discovery(seen, replace(own, key="k" * 40, hostname="login", listen="cluster"))
    agent = subprocess.run(
        [sys.executable, "-m", "runyard.node.agent", "--sweep", str(sweep["key"])],
        env={**os.environ, "RUNYARD_HOME": str(seen.path)}, cwd=tells, timeout=LONG,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert agent.returncode == 0, agent.stderr
    (environment,) = _seen(tells)
    _check(module_home, environment, "run")
    assert own.key not in "".join(path.read_text() for path in tells.rglob("*.json"))


def test_a_revoked_key_of_nodes_is_replaced_by_the_next_start(state_folder: Home) -> None:
    ensure_server(state_folder)
    before = _discovery(state_folder)
    (nodes,) = [key for key in api_of(state_folder).people.list_keys() if key["kind"] == "nodes"]
    restart_server(state_folder)
    assert _discovery(state_folder).node_key == before.node_key
    assert run_runyard("users", "keys", "revoke", nodes["id"]).returncode == 0
    assert _status(before.url, before.node_key, "/api/runs") == 401
    restart_server(state_folder)
    after = _discovery(state_folder)
    assert after.node_key != before.node_key
    assert _status(after.url, after.node_key, "/api/runs") == 200
