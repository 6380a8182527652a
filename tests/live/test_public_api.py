"""`wandb.Api()` of the stock client, against runs that the stock client made."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator

import pytest

from runyard.client.discover import ensure_server
from runyard.client.wandb_variables import wandb_variables
from runyard.home import Home, read_discovery
from tests.conftest import run_runyard
from tests.live.programs import PYTHON

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("yard")]

MAKE_RUNS = """
import sys, wandb
for number in range(3):
    run = wandb.init(
        id=f"run{number}", name=f"name {number}", tags=["even" if number % 2 == 0 else "odd"],
        config={"lr": number / 10, "opt": {"name": "adam"}}, group="all", job_type="train",
    )
    for step in range(1_200 if number == 0 else 5):
        row = {"loss": 1 / (step + 1), "deep": {"er": step}, "x.y": -step}
        if step % 2:
            row["odd"] = step
        if step == 2:
            row["strange"] = float("nan")
        run.log(row)
    if number == 0:
        print("hello console")
        print("hello error", file=sys.stderr)
    run.summary["acc"] = -number
    with open(f"{run.dir}/note.txt", "w") as file:
        file.write(f"note {number}")
    run.save(f"{run.dir}/note.txt", base_path=run.dir)
    run.finish()
"""

READ_RUNS = """
import math, tempfile, wandb
api = wandb.Api()
entity = api.default_entity
assert api.viewer.entity == entity
assert "birds" in [project.name for project in api.projects()]
assert api.project("birds").name == "birds"

def names(**asked):
    return [run.name for run in api.runs("birds", **asked)]

assert len(api.runs("birds")) == 3
assert names(per_page=2) == ["name 0", "name 1", "name 2"]
assert names(order="+summary_metrics.acc", per_page=1) == ["name 2", "name 1", "name 0"]
assert names(filters={"config.lr": {"$gt": 0.05}, "tags": "even"}) == ["name 2"]
assert names(filters={"display_name": {"$regex": "0$"}}) == ["name 0"]
assert names(filters={"$or": [{"config.opt.name": "sgd"}, {"name": "run1"}]}) == ["name 1"]
try:
    names(filters={"confg.lr": 1})
    said = "nothing"
except Exception as error:
    said = str(error)
assert "no field 'confg.lr'" in said, said
for missing in ("birds/no", "fish/run0"):
    try:
        api.run(missing)
        raise AssertionError("found a run that is not there")
    except (ValueError, wandb.errors.CommError) as error:
        assert "ould not find" in str(error), error

run = api.run("birds/run0")
assert run.config == {"lr": 0.0, "opt": {"name": "adam"}}, run.config
assert (run.state, run.group, run.job_type, run.summary["acc"]) == ("finished", "all", "train", 0)
assert run.lastHistoryStep == 1199
assert run.metadata["python"]

rows = run.history(pandas=False)
assert (len(rows), rows[0]["_step"], rows[-1]["_step"]) == (500, 0, 1199)
rows = run.history(keys=["odd", "deep.er", "x.y"], samples=10_000, pandas=False)
assert [row["odd"] for row in rows] == list(range(1, 1200, 2))
assert rows[-1]["deep.er"] == 1199 and rows[-1]["x.y"] == -1199
rows = list(run.scan_history())
assert [row["_step"] for row in rows] == list(range(1200))
assert math.isnan(rows[2]["strange"]) and rows[2]["deep"] == {"er": 2}
rows = list(run.scan_history(page_size=100, min_step=50, max_step=777))
assert [row["_step"] for row in rows] == list(range(50, 777))
rows = list(run.scan_history(keys=["odd"], page_size=100))
assert [row["odd"] for row in rows] == list(range(1, 1200, 2))
run.history(stream="system", pandas=False)

assert "wandb-metadata.json" in [file.name for file in run.files(per_page=2)]
assert {file.name for file in run.files(pattern="%.json")} == {
    "wandb-metadata.json", "wandb-summary.json"}
with tempfile.TemporaryDirectory() as folder:
    run.file("note.txt").download(root=folder)
    assert open(f"{folder}/note.txt").read() == "note 0"
lines = list(run.console_logs(per_page=1))
assert [line.content for line in lines][:2] == ["hello console", "hello error"], lines
assert lines[1].level == "error" and lines[0].timestamp is not None
assert [line.content for line in run.console_logs(last=1)] == [lines[-1].content]
assert list(run.logged_artifacts()) == [] and list(api.project("birds").sweeps()) == []
"""

CHANGE_RUNS = """
import os, tempfile, wandb
api = wandb.Api()
run = api.run("birds/run1")
run.config["extra"] = {"deep": [1, 2]}
run.tags.append("new")
run.notes, run.display_name, run.group = "a note", "renamed", "other"
run.update()
run.summary["late"] = 3
run.summary.update()
with tempfile.TemporaryDirectory() as folder:
    with open(f"{folder}/up load.txt", "w") as file:
        file.write("up")
    run.upload_file(f"{folder}/up load.txt", root=folder)

run = wandb.Api().run("birds/run1")
assert run.config["extra"] == {"deep": [1, 2]} and run.config["lr"] == 0.1
assert (run.tags, run.notes, run.name, run.group) == (["odd", "new"], "a note", "renamed", "other")
assert (run.summary["late"], run.summary["acc"], run.state) == (3, -1, "finished")
assert run.file("up load.txt").size == 2
run.file("up load.txt").delete()
assert "up load.txt" not in [file.name for file in wandb.Api().run("birds/run1").files()]

api.create_project("made", api.default_entity)
assert api.create_run(project="made", run_id="byhand").state == "running"
wandb.Api().run("made/byhand").delete()
assert len(wandb.Api().runs("made")) == 0
with wandb.init(project="made", id="byhand") as again:
    again.log({"x": 1})
assert len(list(wandb.Api().run("made/byhand").scan_history())) == 1
"""

MEET_PEOPLE = """
import wandb
api = wandb.Api()
me = api.viewer
assert me.username == me.entity == api.default_entity and me.admin and me.teams == [me.username]
assert api.user(me.username).username == me.username and api.user("nobody") is None
mine = api.team(me.username)
assert [(member.name, member.account_type) for member in mine.members] == [(me.username, "USER")]
assert not mine.is_team and mine.storage_bytes > 0 and not mine.available
assert api.project("birds").owner.username == me.username
assert api.run("birds/run0").user.username == me.username

crew = api.create_team("crew")
assert crew.is_team and [member.username for member in crew.members] == [me.username]
assert not crew.invite("nobody") and not crew.invite("a@b.c")
robot = crew.create_service_account("nightly tests")
assert (robot.name, robot.account_type) == ("crew-nightly-tests", "SERVICE")
its = wandb.Api(api_key=robot.api_key)
assert its.viewer.username == robot.name
assert its.team("crew").create_service_account("one more") is None
assert crew.load(force=True)["members"][-1].api_key is None, "it is told once"
assert crew.members[-1].delete()
try:
    wandb.Api(api_key=robot.api_key).viewer
except Exception as error:
    assert "401" in str(error) or "not logged in" in str(error).lower(), error
else:
    raise AssertionError("the key of an account that is gone")
assert crew.members[0].delete()
assert crew.load(force=True)["members"] == []
assert wandb.Api().viewer.teams == [me.username]

before = me.api_keys
key = me.generate_api_key("for a test")
assert wandb.Api(api_key=key).viewer.username == me.username
me = wandb.Api().viewer
new, = set(me.api_keys) - set(before)
assert key.startswith(new) and key != new, new
assert me.delete_api_key(new)
assert not me.delete_api_key(before[0])  # The state folder's own stays.
assert wandb.Api().viewer.api_keys == before
"""

LOG_UNTIL_STOPPED = """
import time, wandb
run = wandb.init(id="endless")
print("started", flush=True)
try:
    while True:
        run.log({"x": 1})
        time.sleep(0.2)
except KeyboardInterrupt:
    print("stopped", flush=True)
    raise
"""

LOG_AND_GO_ON = """
import time, wandb
run = wandb.init(project="gone", id="gone1")
print("started", flush=True)
for step in range(40):
    run.log({"x": step})
    time.sleep(0.1)
run.config["late"] = 1
run.finish()
print("ended", flush=True)
"""


@pytest.fixture(scope="module")
def yard(
    module_home: Home,
    module_environment: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Programs run in a folder of this module's own, and their wandb logs to its server."""
    key = ensure_server(module_home).api.people.shell_key("shell of a test", None)
    discovery = read_discovery(module_home)
    assert discovery is not None
    environment = wandb_variables(discovery.url, key, dict(os.environ))
    for name, value in {**environment, "WANDB_PROJECT": "birds"}.items():
        module_environment.setenv(name, value)
    module_environment.chdir(tmp_path_factory.mktemp("work"))
    _run(MAKE_RUNS)


def _run(program: str) -> None:
    done = subprocess.run(
        [PYTHON, "-c", program], capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr[-3_000:]


def test_reading_runs() -> None:
    _run(READ_RUNS)


def test_people_teams_and_keys(module_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    own = ensure_server(module_home).api.people.add_key("a person's own")["key"]
    monkeypatch.setenv("WANDB_API_KEY", own)
    _run(MEET_PEOPLE)


def test_changing_and_deleting_runs() -> None:
    _run(CHANGE_RUNS)


@contextlib.contextmanager
def _started(program: str) -> Iterator[subprocess.Popen[str]]:
    """A program that has said that it started; gone when this ends."""
    with subprocess.Popen(
        [PYTHON, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            while "started" not in process.stdout.readline():
                assert process.poll() is None
            yield process
        finally:
            process.kill()


def _rest(process: subprocess.Popen[str]) -> str:
    """What it prints until it ends."""
    assert process.stdout is not None
    return process.stdout.read()


def test_a_run_is_stopped_from_the_command_line() -> None:
    with _started(LOG_UNTIL_STOPPED) as process:
        asked = run_runyard("cancel", "birds/endless")
        assert (asked.returncode, asked.stdout) == (0, "")
        assert "was asked to stop" in asked.stderr
        assert "stopped" in _rest(process)
        assert process.wait(180) != 0
    shown = json.loads(run_runyard("show", "birds/endless", "--json").stdout)
    assert shown["state"] == "killed"
    assert shown["steps"] > 0
    assert "has ended already (killed)" in run_runyard("cancel", "birds/endless").stderr


def test_a_client_whose_run_is_deleted_goes_on_without_its_server() -> None:
    """The program is not disturbed, and nothing of the run comes back."""
    with _started(LOG_AND_GO_ON) as process:
        deleted = run_runyard("delete", "gone/gone1", "--yes", "--json")
        assert json.loads(deleted.stdout)[0]["id"] == "gone1"
        assert "ended" in _rest(process)
        assert process.wait(180) == 0
    assert json.loads(run_runyard("runs", "-P", "gone", "--json").stdout) == []
