"""NaN and infinity in a sweep's metric: told as they are logged, ended or kept, never the best."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.client.wandb_variables import wandb_variables
from runyard.home import Home, read_discovery
from tests.conftest import ask_runyard, run_runyard
from tests.live.sweeping import api_of, trials_of, with_python, write_sweep

pytestmark = pytest.mark.live

# What each kind logs.
PROGRAM = """\
import math, sys, time, wandb
run = wandb.init()
kind = run.config.kind
values = {
    "good": [0.9, 0.5],
    "some": [0.8, math.nan, math.inf, 0.4, math.nan, math.nan, 0.7, math.nan, 0.6],
    "last": [0.1, math.nan],
    "diverged": [0.2, math.nan],
    "minus": [0.3, -math.inf],
}[kind]
for value in values:
    run.log({"loss": value, "other": math.nan})
if kind in ("diverged", "minus") and "forever" in sys.argv:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        run.log({"loss": values[-1]})
        time.sleep(0.05)
    run.log({"loss": 0.0})  # Nobody has ended it: it would be the best.
"""
KINDS = ["good", "some", "last", "diverged", "minus"]


def run_sweep(folder: Path, *words: str, **runyard: str) -> str:
    file = write_sweep(
        folder,
        PROGRAM,
        command=["${env}", "python", "${program}", *words],
        metric={"name": "loss", "goal": "minimize"},
        parameters={"kind": {"values": KINDS}},
        runyard=runyard,
    )
    done = run_runyard("sweep", str(file), "-j", "5", env=with_python(), cwd=folder, timeout=240)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout + done.stderr


def states(home: Home) -> dict[str, tuple[str, str | None]]:
    return {one["values"]["kind"]: (one["state"], one["cause"]) for one in trials_of(home)}


def test_a_loss_that_diverged_ends_its_trial(state_folder: Home, tmp_path: Path) -> None:
    told = run_sweep(tmp_path / "p", "forever")
    assert states(state_folder) == {
        "good": ("finished", "finished"),
        "some": ("finished", "finished"),
        "last": ("failed", "nan"),
        "diverged": ("failed", "nan"),
        "minus": ("failed", "nan"),
    }
    assert "loss is NaN" in told
    assert "loss is -Infinity" in told
    api = api_of(state_folder)
    by_kind = {one["values"]["kind"]: one for one in trials_of(state_folder)}
    (sweep,) = api.sweeps.sweeps(limit=1)
    assert sweep["best"] is not None
    assert (sweep["best"]["values"]["kind"], sweep["best"]["value"]) == ("some", 0.4)
    best = json.loads(ask_runyard("show", sweep["id"], "--best", "--json", cwd=tmp_path).stdout)[
        "best"
    ]
    assert [one["values"]["kind"] for one in best] == ["some", "good"]
    status = ask_runyard("status", sweep["id"], cwd=tmp_path).stdout
    assert f"failed  {by_kind['diverged']['name']}  loss is NaN" in status
    assert f"failed  {by_kind['last']['name']}  loss is NaN" in status
    assert api.run(by_kind["good"]["id"])["alerts"] == []
    (alert,) = api.run(by_kind["some"]["id"])["alerts"]
    assert (alert["title"], alert["level"]) == ("loss is NaN", "WARN")
    assert by_kind["diverged"]["metrics"] == {"loss": 0.2}, "what it had reached is still told"


def test_what_is_kept_finishes_and_says_so(state_folder: Home, tmp_path: Path) -> None:
    run_sweep(tmp_path / "p", nan="keep")
    assert states(state_folder) == {
        "good": ("finished", "finished"),
        "some": ("finished", "finished"),
        "last": ("finished", "nan"),
        "diverged": ("finished", "nan"),
        "minus": ("finished", "nan"),
    }
    by_kind = {one["values"]["kind"]: one for one in trials_of(state_folder)}
    (alert,) = api_of(state_folder).run(by_kind["minus"]["id"])["alerts"]
    assert alert["title"] == "loss is -Infinity"
    assert by_kind["minus"]["metrics"] == {"loss": 0.3}, "no infinity is ever the best value"
    (sweep,) = api_of(state_folder).sweeps.sweeps(limit=1)
    best = json.loads(ask_runyard("show", sweep["id"], "--best", "--json", cwd=tmp_path).stdout)[
        "best"
    ]
    assert best[0]["values"]["kind"] == "last", "its finite value counts, as it was kept"
    place = f"{sweep['entity']}/{sweep['project']}/{sweep['id']}"
    discovery = read_discovery(state_folder)
    assert discovery is not None
    asked = subprocess.run(
        [sys.executable, "-c", BEST_RUN, place],
        env={**os.environ, **wandb_variables(discovery.url, discovery.key, dict(os.environ))},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert asked.stdout.strip() == "good", asked.stderr


# W&B's client asks for the smallest last value, which must be a number.
BEST_RUN = """
import sys, wandb
print(wandb.Api().sweep(sys.argv[1]).best_run().config["kind"])
"""
