"""Runs sent to another server. A second server of ours stands in for W&B's cloud."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.client.push import Target, push_run
from runyard.client.wandb_server import WandbServer
from runyard.home import Home, read_discovery
from runyard.shapes.runs import Run
from tests.conftest import end_server, run_runyard
from tests.live.programs import PYTHON, stock_client, write_program

pytestmark = pytest.mark.live

PROGRAM = """
import sys, time, wandb
run = wandb.init(config={"lr": 0.5, "deep": {"er": [1, 2]}}, tags=["a", "b"], notes="a note",
                 group="group", job_type="train", name="swift otter")
print("hello from stdout")
for step in range(40):
    run.log({"value": step * step, "nested": {"half": step / 2}, "nan": float("nan")})
open("notes.txt", "w").write("kept" * 1000)
open("empty.txt", "w").close()
run.save("notes.txt", policy="now")
run.save("empty.txt", policy="now")
run.summary["best"] = 3
time.sleep(1.5)
run.finish(exit_code=4)
sys.exit(4)
"""

ROWS = 20_000


@pytest.fixture(scope="module")
def yards(
    module_home: Home, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Home, Home]]:
    """Ours, and the one that runs are sent to."""
    other = Home(tmp_path_factory.mktemp("push") / "cloud")
    try:
        for home in (module_home, other):
            ensure_server(home)
        yield module_home, other
    finally:
        end_server(other)


@pytest.fixture(scope="module")
def bob(yards: tuple[Home, Home]) -> str:
    """The key of somebody on the other side."""
    return api_of(yards[1]).people.add_user("bob")["key"]


@pytest.fixture(scope="module")
def tracked(yards: tuple[Home, Home], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of the stock client's, with files."""
    program = write_program(tmp_path_factory.mktemp("project"), PROGRAM)
    done = run_runyard(
        "run", "-q", "-P", "birds", "--", PYTHON, str(program), cwd=program.parent,
        env={"WANDB_X_STATS_SAMPLING_INTERVAL": "0.3"},
    )  # fmt: skip
    assert done.returncode == 4, done.stderr
    (run,) = api_of(yards[0]).runs(project="birds")
    return run


@pytest.fixture(scope="module")
def long(yards: tuple[Home, Home]) -> Run:
    """A run with more rows than go into one message, with a gap in the middle."""
    near = read_discovery(yards[0])
    assert near is not None
    server = WandbServer(near.url, near.key)
    entity = server.viewer()["entity"]
    server.graphql(
        'mutation { upsertBucket(input: {name: "long", modelName: "rows", host: "h", '
        'config: "{\\"a\\": {\\"value\\": 1}}"}) { bucket { id } } }',
        {},
    )
    half = ROWS // 2
    for start, stop in ((0, half), (half + 10, ROWS)):
        rows = [json.dumps({"_step": step, "value": step}) for step in range(start, stop)]
        body = {"wandb-history.jsonl": {"offset": start, "content": rows}}
        server.file_stream(entity, "rows", "long", {"files": body})
    server.file_stream(entity, "rows", "long", {"complete": True, "exitcode": 0})
    (run,) = api_of(yards[0]).runs(project="rows")
    return run


def api_of(home: Home) -> Api:
    return ensure_server(home).api


def push(yards: tuple[Home, Home], key: str, *words: str) -> subprocess.CompletedProcess[str]:
    to = ("--to", api_of(yards[1]).url)
    return run_runyard("sync", *words, *to, env={"WANDB_API_KEY": key}, timeout=120)


def content(home: Home, words: str) -> dict[str, Any]:
    """All that a server has of a run, but for whose it is."""
    api = api_of(home)
    run = api.run(words)
    record: dict[str, Any] = {**api.record(run)}
    for own in ("entity", "project"):
        record.pop(own)
    record["streams"] = {}
    for stream, count in record["lines"].items():
        rows: dict[int, Any] = {}
        after = 0
        while (page := api.lines(run, stream, after))["lines"]:
            for number, line in enumerate(page["lines"], page["start"]):
                # A NaN equals nothing, so its name is compared.
                rows[number] = line if stream == "output" else json.loads(line, parse_constant=str)
            after = page["start"] + len(page["lines"])
        assert after == count
        record["streams"][stream] = rows
    record["content"] = {}
    for file in record["files"]:
        into = io.BytesIO()
        api.download(run, file["name"], into)
        record["content"][file["name"]] = into.getvalue()
    return record


def test_both_sides_have_the_same(yards: tuple[Home, Home], bob: str, tracked: Run) -> None:
    planned = push(yards, bob, tracked["id"], "--dry-run", "--json")
    assert planned.returncode == 0, planned.stderr
    (plan,) = json.loads(planned.stdout)
    assert (plan["new"], plan["lines"]["history"], plan["completes"]) == (True, 40, True)
    assert api_of(yards[1]).runs() == []

    done = push(yards, bob, tracked["id"])
    assert done.returncode == 0, done.stderr
    near, far = content(yards[0], tracked["id"]), content(yards[1], tracked["id"])
    assert near["content"]["notes.txt"] == b"kept" * 1000
    assert near["content"]["empty.txt"] == b""
    assert len(near["streams"]["history"]) == 40
    assert near["streams"]["events"]
    assert any("hello from stdout" in line for line in near["streams"]["output"].values())
    assert far == near
    (there,) = api_of(yards[1]).runs(project="birds")
    assert (there["entity"], there["state"], there["exit_code"]) == ("bob", "failed", 4)
    assert (there["tags"], there["group"], there["name"]) == (["a", "b"], "group", "swift otter")
    assert there["summary"]["best"] == 3

    # Once more changes nothing, the time of the end included.
    assert push(yards, bob, tracked["id"]).returncode == 0
    assert content(yards[1], tracked["id"]) == near
    (again,) = api_of(yards[1]).runs(project="birds")
    assert (again["ended_at"], again["state"]) == (there["ended_at"], there["state"])


MAKE_EGGS = """
import wandb
from pathlib import Path
with wandb.init(project="nests", id="hen") as run:
    eggs = wandb.Artifact("eggs", "dataset", description="three of them", metadata={"count": 3})
    for name in ("one", "two", "deep/three"):
        with eggs.new_file(f"{name}.txt") as file:
            file.write(name * 1000)
    Path("hen.txt").write_text("brown")
    eggs.add_reference(Path("hen.txt").resolve().as_uri(), name="hen.txt")
    run.log_artifact(eggs, aliases=["latest", "fresh"], tags=["brown"]).wait()
"""
USE_EGGS = """
import wandb
with wandb.init(project="nests", id="cook") as run:
    eggs = run.use_artifact("eggs:fresh")
    meal = wandb.Artifact("meal", "dish")
    meal.add_reference(eggs.get_entry("one.txt"), name="egg.txt")
    with meal.new_file("salt.txt") as file:
        file.write("salt")
    run.log_artifact(meal).wait()
    run.log({"table": wandb.Table(columns=["a"], data=[[1], [2]])})
"""
LOOK = """
import json, sys, wandb
from pathlib import Path
api = wandb.Api()
told = {}
for name in ("eggs:fresh", "meal:latest"):
    artifact = api.artifact(f"nests/{name}")
    folder = Path(artifact.download(root=name, allow_missing_references=True))
    made_by = artifact.logged_by()
    told[name] = {
        "digest": artifact.digest, "type": artifact.type, "metadata": artifact.metadata,
        "description": artifact.description, "tags": sorted(artifact.tags),
        "aliases": sorted(artifact.aliases), "size": artifact.size,
        "files": {str(path.relative_to(folder)): path.read_text()
                  for path in folder.rglob("*") if path.is_file()},
        "references": {name: entry.ref for name, entry in artifact.manifest.entries.items()
                       if entry.ref and entry.ref.startswith("file:")},
        "made_by": made_by and made_by.id, "used_by": [run.id for run in artifact.used_by()],
    }
told["cook"] = sorted(one.name.split(":")[0] for one in api.run("nests/cook").logged_artifacts())
print(json.dumps(told))
"""


def look(home: Home, key: str | None, folder: Path) -> Any:
    """The artifacts of a server, with the eyes of the stock client."""
    env = stock_client(home)
    env |= {"WANDB_CACHE_DIR": str(folder / "cache"), "WANDB_ARTIFACT_DIR": str(folder / "made")}
    env |= {} if key is None else {"WANDB_API_KEY": key}
    folder.mkdir()
    done = subprocess.run(
        [PYTHON, "-c", LOOK], cwd=folder, env={**os.environ, **env}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_artifacts_go_with_the_runs_that_made_and_used_them(
    yards: tuple[Home, Home], bob: str, tmp_path: Path
) -> None:
    environment = {**os.environ, **stock_client(yards[0])}
    for program in (MAKE_EGGS, USE_EGGS):
        subprocess.run([PYTHON, "-c", program], cwd=tmp_path, env=environment, check=True)
    planned = push(yards, bob, "nests/cook", "--dry-run", "--json")
    (plan,) = json.loads(planned.stdout)
    assert {name.split(":")[0] for name in plan["artifacts"]} >= {"eggs", "meal"}
    # The one that used it goes first: what it used goes along.
    for run in ("cook", "hen"):
        done = push(yards, bob, f"nests/{run}")
        assert done.returncode == 0, done.stderr
    near, far = look(yards[0], None, tmp_path / "near"), look(yards[1], bob, tmp_path / "far")
    assert near["meal:latest"]["files"]["egg.txt"] == "one" * 1000
    assert near["eggs:fresh"]["files"]["deep/three.txt"] == "deep/three" * 1000
    assert (near["eggs:fresh"]["made_by"], near["eggs:fresh"]["used_by"]) == ("hen", ["cook"])
    assert far == near

    # Again, nothing is sent, and what has moved on there stays so.
    ask = WandbServer(api_of(yards[1]).url, bob).graphql
    fresh = """query { project(name: "nests", entityName: "bob") {
      artifact(name: "eggs:fresh") { id } } }"""
    found = ask(fresh, {})["project"]["artifact"]["id"]
    ask(
        "mutation($id: ID!) { deleteAliases(input: {artifactID: $id, aliases: [{entityName: "
        '"bob", projectName: "nests", artifactCollectionName: "eggs", alias: "fresh"}]}) '
        "{ success } }",
        {"id": found},
    )
    again = push(yards, bob, "nests/cook", "nests/hen", "--json")
    assert [report["artifacts"] for report in json.loads(again.stdout)] == [[], []]
    assert ask(fresh, {})["project"]["artifact"] is None


def test_a_push_of_artifacts_that_is_cut_off_ends_whole(
    yards: tuple[Home, Home], bob: str, tmp_path: Path
) -> None:
    environment = {**os.environ, **stock_client(yards[0])}
    program = MAKE_EGGS.replace('"nests"', '"farm"').replace("1000", "999")  # Other contents.
    subprocess.run([PYTHON, "-c", program], cwd=tmp_path, env=environment, check=True)
    run = api_of(yards[0]).run("farm/hen")
    target = Target(WandbServer(api_of(yards[1]).url, bob), "bob", "farm")
    count = [0]

    class Cut(Exception):
        pass

    def cut(text: str) -> None:
        count[0] += "eggs:v0: file" in text
        if count[0] == 2:
            raise Cut

    with pytest.raises(Cut):
        push_run(api_of(yards[0]), run, target, cut)
    far = api_of(yards[1])
    assert far.artifacts.of_run(far.run("farm/hen")["key"])["logged"] == []
    report = push_run(api_of(yards[0]), run, target, lambda _text: None)
    assert report.artifacts == ["eggs:v0"]
    (there,) = far.artifacts.of_run(far.run("farm/hen")["key"])["logged"]
    (here,) = api_of(yards[0]).artifacts.of_run(run["key"])["logged"]
    assert (there["digest"], there["aliases"]) == (here["digest"], here["aliases"])


def test_a_push_that_is_cut_off_at_every_step_ends_whole(
    yards: tuple[Home, Home], bob: str, long: Run
) -> None:
    class Cut(Exception):
        pass

    def cut(_text: str) -> None:
        raise Cut

    target = Target(WandbServer(api_of(yards[1]).url, bob), "bob", "steps")
    pushes = 0
    while True:
        pushes += 1
        try:
            push_run(api_of(yards[0]), long, target, cut)
            break
        except Cut:
            assert pushes < 50
    assert pushes > 3
    assert content(yards[1], "steps/long") == content(yards[0], "long")


def test_a_killed_push_is_taken_up_again(
    yards: tuple[Home, Home], bob: str, long: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", bob)
    far = api_of(yards[1])
    words = ["sync", "long", "--to", far.url, "--project", "killed"]
    process = subprocess.Popen([PYTHON, "-m", "runyard", *words], stdout=subprocess.DEVNULL)
    end = time.monotonic() + 180
    while not any(run["steps"] for run in far.runs(project="killed")):
        assert time.monotonic() < end
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = run_runyard(*words, timeout=120)
    assert done.returncode == 0, done.stderr
    assert content(yards[1], "killed/long") == content(yards[0], "rows/long")


def test_what_goes_wrong_is_told(yards: tuple[Home, Home], bob: str, long: Run) -> None:
    refused = push(yards, "x" * 40, "long")
    assert (refused.returncode, "refused the key" in refused.stderr) == (1, True)
    foreign = push(yards, bob, "long", "--entity", "eve")
    assert foreign.returncode == 1
    assert "'eve' is not an entity" in foreign.stderr
    nothing = push(yards, bob)
    assert (nothing.returncode, "which runs?" in nothing.stderr) == (2, True)
    nowhere = run_runyard("sync", "long", "--to", "ftp://x", env={"WANDB_API_KEY": bob})
    assert "is not a server's address" in nowhere.stderr


def test_all_runs_of_a_project_go(yards: tuple[Home, Home], bob: str, long: Run) -> None:
    done = push(yards, bob, "--all", "--from-project", "rows", "--project", "copy", "--json")
    assert done.returncode == 0, done.stderr
    assert [report["run"] for report in json.loads(done.stdout)] == ["long"]
    assert api_of(yards[1]).run("copy/long")["state"] == "finished"
