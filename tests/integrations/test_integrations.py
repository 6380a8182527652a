"""Each framework trains for a moment and logs by its own means: what it sends has to arrive.

RUNYARD_ALL_INTEGRATIONS=1 tries them: they are gigabytes. Then `python -m tests.integrations.table`
writes the table in docs/wandb-compatibility.md.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from runyard.client.discover import ensure_server
from runyard.home import Home
from tests.conftest import RunRunyard
from tests.environments import Missing, skip_or_fail
from tests.integrations.cases import CASES, PROGRAMS, Case, Result, write_result
from tests.live.programs import curves, list_runs
from tests.train.frameworks import ensure_framework, program_environment

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        not os.environ.get("RUNYARD_ALL_INTEGRATIONS"),
        reason="RUNYARD_ALL_INTEGRATIONS=1: gigabytes of frameworks",
    ),
]
_VERSIONS = (
    "import json, sys; from importlib.metadata import version; "
    "print(json.dumps([version(name) for name in sys.argv[1:]]))"
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_it_logs_arrives(
    case: Case, runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    python = framework(case.environment)
    train(runyard, python, case.program, tmp_path, YOLO_CONFIG_DIR=str(tmp_path))
    (run,) = list_runs(runyard)
    assert run["state"] == "finished"
    kept = curves(state_folder, run["id"])
    counts = {name: kept[name]["count"] for name in kept}
    assert counts.get(case.metric, 0) >= case.rows, counts
    if case.config:
        assert find(run["config"], case.config) is not None, run["config"]
    if case.artifact:
        artifacts = ensure_server(state_folder).api.artifacts.of_run(run["key"])["logged"]
        assert case.artifact in [artifact["type"] for artifact in artifacts]
    if case.media:
        assert any(case.media in name for name in run["summary"]), list(run["summary"])
    versions = subprocess.check_output([python, "-c", _VERSIONS, case.package, "wandb"], text=True)
    package, wandb = json.loads(versions)
    write_result(case, Result(package, wandb, len(kept), len(run["config"])))


@pytest.mark.parametrize(
    ("program", "names", "more"),
    [
        ("torch_watch", ["graph_0", "gradients/0.weight", "parameters/2.bias"], {}),
        ("transformers_watch", ["gradients/layer.weight"], {"WANDB_WATCH": "all"}),
    ],
)
def test_a_watched_models_gradients_and_graph_arrive(
    runyard: RunRunyard,
    state_folder: Home,
    tmp_path: Path,
    program: str,
    names: list[str],
    more: dict[str, str],
) -> None:
    train(runyard, framework("integrations"), program, tmp_path, **more)
    (run,) = list_runs(runyard)
    kinds = {name: run["summary"][name]["_type"] for name in names if name in run["summary"]}
    assert kinds == {name: "graph-file" if "graph" in name else "histogram" for name in names}
    api = ensure_server(state_folder).api
    rows = api.rows(api.run(run["id"]), metrics=[names[-1]])
    assert len([row for row in rows if names[-1] in row]) > 1, list(run["summary"])


def framework(name: str) -> Path:
    try:
        return ensure_framework(name)
    except Missing as missing:
        skip_or_fail(str(missing))


def train(runyard: RunRunyard, python: Path, program: str, folder: Path, **more: str) -> None:
    project = folder / "project"
    project.mkdir()
    ended = runyard(
        "run", "--", str(python), str(PROGRAMS / f"{program}.py"), cwd=project,
        env=program_environment(HF_HUB_OFFLINE="1", **more), timeout=500,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]


def find(settings: Any, name: str) -> Any:
    for key in name.split("."):
        settings = settings.get(key) if isinstance(settings, dict) else None
    return settings
