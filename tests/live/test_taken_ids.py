"""A run id that somebody else has, with the stock client: one's own run, or a plain refusal."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.home import Home
from tests.conftest import run_runyard
from tests.live.programs import PYTHON, stock_client

pytestmark = pytest.mark.live

LOG = """
import json, sys, wandb
how = json.loads(sys.argv[1])
with wandb.init(project="birds", id="taken", **how) as run:
    run.log({"who": run.entity, "resumed": run.resumed})
"""


class Yard:
    """A server with two people: ada, who owns it, and eve."""

    def __init__(self, home: Home, folder: Path) -> None:
        self.api: Api = ensure_server(home).api
        (self.owner,) = [user["name"] for user in self.api.people.users()]
        self._folder = folder
        added = run_runyard("users", "add", "eve", "--json")
        assert added.returncode == 0, added.stderr
        ours = stock_client(home)
        self._keys = {
            self.owner: ours,
            "eve": {**ours, "WANDB_API_KEY": json.loads(added.stdout)["key"]},
        }

    def log(self, who: str, **how: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PYTHON, "-c", LOG, json.dumps(how)],
            cwd=self._folder,
            env={**os.environ, **self._keys[who], "WANDB_SILENT": "false"},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )


@pytest.fixture(scope="module")
def yard(module_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Yard:
    yard = Yard(module_home, tmp_path_factory.mktemp("taken"))
    done = yard.log(yard.owner)
    assert done.returncode == 0, done.stderr
    return yard


@pytest.mark.parametrize(
    ("resume", "said"),
    [(None, "is not an entity"), ("allow", "is not an entity"), ("must", "does not exist")],
)
def test_in_somebody_elses_entity_it_is_refused(yard: Yard, resume: str | None, said: str) -> None:
    before = yard.api.run(f"{yard.owner}/birds/taken")
    done = yard.log("eve", entity=yard.owner, resume=resume)
    assert done.returncode != 0
    assert "Traceback" in done.stderr  # wandb.init raised, and the program ended by it.
    assert said in done.stderr
    assert before == yard.api.run(f"{yard.owner}/birds/taken")


def test_in_ones_own_entity_it_is_a_run_of_ones_own(yard: Yard) -> None:
    done = yard.log("eve", resume="allow")
    assert done.returncode == 0, done.stderr
    shown = {run["entity"]: run for run in yard.api.runs(project="birds")}
    assert set(shown) == {"eve", yard.owner}
    assert shown["eve"]["summary"]["who"] == "eve"
    assert shown["eve"]["summary"]["resumed"] is False
    assert shown[yard.owner]["summary"]["who"] == yard.owner
