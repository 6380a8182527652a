"""What a run sends besides numbers: media, files, definitions of metrics, alerts, changes."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runyard.client.discover import ensure_server
from runyard.home import Home, read_discovery
from tests.conftest import run_runyard
from tests.live.programs import PYTHON, stock_client, write_program
from tests.server.asgi import basic

pytestmark = pytest.mark.live

PROGRAM = """
import pathlib, sys, time, wave
import numpy as np, plotly.graph_objects as go, wandb

run = wandb.init(id="media", config={"betas": (0.9, 0.99), "deep": {"er": [1, {"x": None}]}},
                 tags=["first"], group="g", job_type="train")
run.define_metric("epoch", hidden=True)
run.define_metric("val/*", step_metric="epoch")
run.define_metric("loss", summary="min,max,mean")
run.define_metric("acc", summary="max")

with wave.open("tone.wav", "wb") as tone:
    tone.setnchannels(1); tone.setsampwidth(2); tone.setframerate(8000)
    tone.writeframes(bytes(1600))
pathlib.Path("clip.mp4").write_bytes(b"not really a film")
pixels = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
run.log({
    "image": wandb.Image(pixels, caption="a caption"),
    "images": [wandb.Image(pixels), wandb.Image(pixels[::-1])],
    "histogram": wandb.Histogram([1, 2, 2, 3]),
    "audio": wandb.Audio("tone.wav"),
    "video": wandb.Video("clip.mp4", format="mp4"),
    "html": wandb.Html("<b>bold</b>", inject=False),
    "cloud": wandb.Object3D(np.zeros((3, 3))),
    "plotly": wandb.Plotly(go.Figure(data=[go.Bar(y=[1, 2])])),
})
for step in range(5):
    run.log({"loss": 5 - step, "acc": step / 10, "epoch": step, "val/loss": -step})

pathlib.Path("now.txt").write_text("one")
pathlib.Path("live.txt").write_text("one")
pathlib.Path("end.txt").write_text("one")
run.save("now.txt", policy="now")
run.save("live.txt", policy="live")
run.save("end.txt", policy="end")
run.config["lr"] = np.float32(0.5)
run.config.update({"betas": (1, 2), "late": {"list": (1, 2)}}, allow_val_change=True)
run.tags = run.tags + ("second",)
run.notes = "changed on the way"
run.name = "renamed"
run.alert("Accuracy is low", "only 0.4", level="ERROR", wait_duration=60)
for percent in range(0, 101, 20):
    sys.stdout.write(f"\\rprogress {percent}%")
    sys.stdout.flush()
    time.sleep(0.3)
print("\\ndone")
pathlib.Path("end.txt").write_text("two")
run.finish()

run = wandb.init(id="preempted")
run.log({"a": 1})
run.mark_preempting()
run.finish(exit_code=1)
"""
SHARED = """
import sys, time, wandb
primary = sys.argv[1] == "0"
run = wandb.init(id="shared", config={f"of{sys.argv[1]}": 1}, settings=wandb.Settings(
    mode="shared", x_primary=primary, x_label=f"rank{sys.argv[1]}", x_update_finish_state=primary))
for step in range(10):
    run.log({f"v{sys.argv[1]}": step})
    print("said", step)
    time.sleep(0.1)
time.sleep(3 if primary else 0)
run.finish()
"""


@dataclass(frozen=True)
class Yard:
    home: Home

    def run(self, name: str) -> Any:
        return ensure_server(self.home).api.run(name)

    def console(self, name: str) -> str:
        return ensure_server(self.home).api.console(self.run(name), 0)["text"]

    def file(self, run: Any, name: str) -> bytes:
        found = read_discovery(self.home)
        assert found is not None
        path = f"/files/{run['entity']}/{run['project']}/{run['id']}/{name}"
        request = urllib.request.Request(
            found.url + path, headers={"Authorization": basic(found.key)}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            data: bytes = answer.read()
        return data

    def internals(self, name: str) -> Any:
        """What the client keeps for itself in the config, as it is stored."""
        found = read_discovery(self.home)
        assert found is not None
        question = f'{{ model(name: "birds") {{ bucket(name: "{name}") {{ config }} }} }}'
        request = urllib.request.Request(
            f"{found.url}/graphql",
            json.dumps({"query": question}).encode(),
            {"Authorization": basic(found.key), "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            config = json.load(answer)["data"]["model"]["bucket"]["config"]
        return json.loads(config)["_wandb"]["value"]


@pytest.fixture(scope="module")
def yard(module_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Yard:
    environment = {**os.environ, **stock_client(module_home), "WANDB_PROJECT": "birds"}
    environment["WANDB_X_SAVE_REQUIREMENTS"] = "true"
    work = tmp_path_factory.mktemp("work")
    programs = [(write_program(work, PROGRAM, "media.py"), "")]
    shared = write_program(work, SHARED, "shared.py")
    programs += [(shared, "0"), (shared, "1")]
    started = [_start(program, word, environment) for program, word in programs]
    ended = [(one.communicate(timeout=180)[1], one.returncode) for one in started]
    assert [code for _, code in ended] == [0, 0, 0], ended
    return Yard(module_home)


def _start(program: Path, word: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PYTHON, program.name, word], cwd=program.parent, env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("image", "image-file"),
        ("images", "images/separated"),
        ("histogram", "histogram"),
        ("audio", "audio-file"),
        ("video", "video-file"),
        ("html", "html-file"),
        ("cloud", "object3D-file"),
        ("plotly", "plotly-file"),
    ],
)
def test_media_and_its_files(yard: Yard, key: str, kind: str) -> None:
    run = yard.run("media")
    found = run["summary"][key]
    assert found["_type"] == kind
    paths = [found["path"]] if "path" in found else found.get("filenames", [])
    assert paths or kind == "histogram"
    for path in paths:
        assert path in run["files"]
        data = yard.file(run, path)
        assert "size" not in found or len(data) == found["size"]


def test_saved_files_have_their_last_content(yard: Yard) -> None:
    run = yard.run("media")
    assert {"now.txt", "live.txt", "end.txt"} <= set(run["files"])
    assert {"requirements.txt", "wandb-metadata.json", "config.yaml"} <= set(run["files"])
    assert [yard.file(run, name) for name in ("now.txt", "end.txt")] == [b"one", b"two"]
    assert json.loads(yard.file(run, "wandb-metadata.json"))["program"].endswith("media.py")


def test_changes_on_the_way(yard: Yard) -> None:
    run = yard.run("media")
    assert run["config"] == {
        "betas": [1, 2],
        "deep": {"er": [1, {"x": None}]},
        "lr": 0.5,
        "late": {"list": [1, 2]},
    }
    assert (run["tags"], run["notes"], run["name"]) == (
        ["first", "second"],
        "changed on the way",
        "renamed",
    )
    assert (run["group"], run["job_type"]) == ("g", "train")


def test_defined_metrics(yard: Yard) -> None:
    summary = yard.run("media")["summary"]
    assert summary["loss"] == {"min": 1, "max": 5, "mean": 3}
    assert summary["acc"] == {"max": 0.4}
    metrics = yard.internals("media")["m"]
    by_name = {one.get("1") or one.get("2"): one for one in metrics}
    assert {"epoch", "loss", "acc", "val/*"} <= set(by_name)
    assert 2 in by_name["epoch"]["6"]  # Hidden.
    assert metrics[by_name["val/*"]["5"] - 1]["1"] == "epoch"  # Over this one, not over steps.


def test_an_alert_is_listed(yard: Yard) -> None:
    (alert,) = yard.run("media")["alerts"]
    assert (alert["title"], alert["text"], alert["level"]) == (
        "Accuracy is low",
        "only 0.4",
        "ERROR",
    )
    assert "Accuracy is low" in yard.home.log.read_text()
    assert "alert (ERROR)" in run_runyard("show", "media").stdout


def test_a_progress_bar_is_one_line(yard: Yard) -> None:
    lines = yard.console("media").split("\n")
    assert [line for line in lines if "progress" in line] == ["progress 100%"], lines
    assert "done" in lines


def test_a_preempted_run(yard: Yard) -> None:
    run = yard.run("preempted")
    assert (run["state"], run["exit_code"], run["steps"]) == ("preempted", 1, 1)


def test_two_writers_of_one_run(yard: Yard) -> None:
    run = yard.run("shared")
    assert (run["state"], run["steps"], run["config"]) == ("finished", 20, {"of0": 1, "of1": 1})
    assert (run["summary"]["v0"], run["summary"]["v1"]) == (9, 9)
    api = ensure_server(yard.home).api
    counts = {one["key"]: one["count"] for one in api.metrics(run, points=100)}
    assert (counts["v0"], counts["v1"]) == (10, 10)
    text = yard.console("shared")
    assert (text.count("[rank0] said"), text.count("[rank1] said")) == (10, 10)
    assert set(yard.internals("shared")["e"])
