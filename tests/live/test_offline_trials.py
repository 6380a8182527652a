"""Sweeps whose programs log to files, or to another server: it comes in when the agent ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.client.discover import ensure_server
from runyard.home import Home
from tests.conftest import RunRunyard, end_server
from tests.live.programs import curves
from tests.live.sweeping import api_of, write_sweep

pytestmark = pytest.mark.live

LOGS = """\
import os, wandb
assert os.environ["WANDB_MODE"] == "offline"
run = wandb.init()
for step in range(5):
    run.log({"value": step * run.config.x})
run.finish()
"""


def test_what_trials_record_is_brought_in_at_the_agents_end(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    command = [sys.executable, "${program}"]
    more = {"parameters": {"x": {"values": [2]}}, "metric": {"name": "value", "goal": "maximize"}}
    file = write_sweep(folder, LOGS, command=command, **more)
    made = json.loads(runyard("sweep", "--no-run", "--json", str(file), cwd=folder).stdout)
    job = folder / "job.json"
    job.write_text(json.dumps({"sweep": made["key"], "folder": str(folder), "offline": True}))
    done = subprocess.run(
        [sys.executable, "-m", "runyard.node.agent", "--job", str(job)],
        capture_output=True, text=True, check=False, timeout=90,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (trial,) = api_of(state_folder).sweeps.trials(made["key"])
    assert (trial["state"], trial["value"]) == ("finished", 8)
    assert curves(state_folder, trial["id"])["value"]["values"] == [0, 2, 4, 6, 8]
    assert runyard("sync").stdout == "nothing to bring in\n"


LOGS_ELSEWHERE = """\
import os, sys, wandb
saved = f"{os.environ['RUNYARD_CHECKPOINT_DIR']}/step"
begin = int(open(saved).read()) if os.path.exists(saved) else 0
run = wandb.init()
assert run.settings.base_url == sys.argv[1], run.settings.base_url
for step in range(begin, 5):
    run.log({"value": step * run.config.x})
    if step == 2:
        run.finish()
        open(saved, "w").write("3")
        sys.exit(75)
run.finish()
"""


def test_trials_log_to_another_server_cut_off_or_not(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other server is one of ours, as a double for W&B's cloud."""
    other = Home(tmp_path / "other")
    monkeypatch.setenv("HOME", str(tmp_path))
    try:
        far = ensure_server(other).api
        credentials = tmp_path / "wandb_credentials.txt"
        credentials.write_text(far.people.add_user("bob")["key"])
        credentials.chmod(0o600)
        folder = tmp_path / "project"
        command = [sys.executable, "${program}", far.url]
        file = write_sweep(
            folder, LOGS_ELSEWHERE, command=command, parameters={"x": {"values": [2]}}
        )
        (folder / "runyard.yaml").write_text(
            f"tracking: {{server: {far.url}, entity: bob, project: far}}\n"
        )
        done = runyard("sweep", "--json", str(file), cwd=folder)
        made = json.loads(done.stdout)
        (trial,) = api_of(state_folder).sweeps.trials(made["key"])
        assert (trial["state"], trial["attempts"]) == ("finished", 2)
        # One run there, unbroken; it has no sweep there, and the key is that server's own.
        (sent,) = far.runs(project="far")
        assert (sent["entity"], sent["id"], sent["state"]) == ("bob", trial["id"], "finished")
        assert sent["group"] == made["id"]
        assert curves(other, trial["id"])["value"]["values"] == [0, 2, 4, 6, 8]
        # And here, under the sweep's own name.
        assert curves(state_folder, trial["id"])["value"]["values"] == [0, 2, 4, 6, 8]
        credentials.unlink()
        refused = runyard("sweep", str(file), cwd=folder)
        assert refused.returncode == 1
        assert f"there is no key for {far.url}" in refused.stderr
    finally:
        end_server(other)
