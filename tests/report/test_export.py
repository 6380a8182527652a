"""Runs as tables, in every form, from the real server."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import pytest

import runyard
from runyard.client.api import Api
from runyard.client.discover import ensure_server, stop_server
from runyard.home import Home
from runyard.report.sides import flatten
from tests.conftest import RunRunyard, run_runyard

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def api(module_home: Home) -> Api:
    """A server with two runs that logged different things."""
    api = ensure_server(module_home).api
    for name, extra in (("one", {"acc": 0.5}), ("two", {"deep": {"er": [1, 2]}})):
        api.create_run({"id": name, "project": "birds", "command": ["x"]})
        rows = [{"_step": step, "loss": step / 4, **extra} for step in range(5)]
        rows.append({"_step": 5, "loss": math.nan})
        files = {
            "wandb-history.jsonl": {"offset": 0, "content": [json.dumps(row) for row in rows]},
            "wandb-events.jsonl": {"offset": 0, "content": ['{"system.cpu": 7.5}']},
            "wandb-summary.json": {"offset": 0, "content": ['{"loss": 1.25, "best": "x"}']},
        }
        entity = api.run(name)["entity"]
        api._connection.post(f"/files/{entity}/birds/{name}/file_stream", {"files": files})
    return api


@pytest.fixture
def export(api: Api) -> RunRunyard:
    return run_runyard


def test_csv_has_every_row_and_the_columns_of_all_runs(export: RunRunyard) -> None:
    done = export("export", "-P", "birds")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert len(rows) == 12
    assert set(rows[0]) == {"run", "name", "project", "_step", "loss", "acc", "deep.er"}
    one = [row for row in rows if row["run"] == "one"]
    assert [row["loss"] for row in one] == ["0.0", "0.25", "0.5", "0.75", "1.0", "nan"]
    assert {row["deep.er"] for row in rows} == {"", "[1, 2]"}


def test_some_metrics_of_some_runs(export: RunRunyard) -> None:
    done = export("export", "one", "--metric", "acc", "--format", "jsonl")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["_step"] for row in rows] == [0, 1, 2, 3, 4]
    assert set(rows[0]) == {"run", "name", "project", "_step", "acc"}


def test_one_row_a_run(export: RunRunyard, tmp_path: Path) -> None:
    target = tmp_path / "runs.csv"
    assert export("export", "--what", "summary", "-o", str(target)).returncode == 0
    rows = list(csv.DictReader(io.StringIO(target.read_text())))
    assert {row["run"] for row in rows} == {"one", "two"}
    assert {row["loss"] for row in rows} == {"1.25"}


def test_system_metrics(export: RunRunyard) -> None:
    done = export("export", "two", "--what", "system")
    assert "7.5" in done.stdout


def test_parquet_keeps_numbers(export: RunRunyard, tmp_path: Path) -> None:
    import pyarrow.parquet

    target = tmp_path / "runs.parquet"
    assert export("export", "-o", str(target)).returncode == 0
    table = pyarrow.parquet.read_table(target)
    assert table.num_rows == 12
    assert str(table.schema.field("loss").type) == "double"
    assert str(table.schema.field("_step").type) == "int64"
    assert list(tmp_path.iterdir()) == [target]


def test_a_dataframe(api: Api) -> None:
    import pandas

    frame = runyard.dataframe("one", metrics=["loss"])
    assert isinstance(frame, pandas.DataFrame)
    assert frame["loss"].tolist()[:5] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert math.isnan(frame["loss"].iloc[-1])
    assert len(runyard.dataframe(project="birds", what="summary")) == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-o", "runs.xls"], ".csv"),
        (["-P", "nothing"], "no runs in project nothing"),
        (["nobody"], "no run 'nobody'"),
        (["--format", "parquet"], "-o"),
    ],
)
def test_what_cannot_be_is_refused(export: RunRunyard, words: list[str], told: str) -> None:
    done = export("export", *words)
    assert done.returncode in (1, 2)
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_nested_values_are_dotted_and_media_whole() -> None:
    row = {"a": {"b": 1, "c": {}}, "img": {"_type": "image-file", "path": "x"}}
    assert dict(flatten(row)) == {"a.b": 1, "a.c": {}, "img": row["img"]}


def test_a_copy_made_while_it_runs_is_a_state_folder(
    api: Api, export: RunRunyard, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    done = export("server", "backup", str(copy))
    assert done.returncode == 0, done.stderr
    assert copy.stat().st_mode & 0o777 == 0o700
    again = export("server", "backup", str(copy))
    assert again.returncode == 1
    assert "already" in again.stderr
    listed = export("runs", "--json", env={"RUNYARD_HOME": str(copy)})
    stop_server(Home(copy), force=True)
    assert {run["id"] for run in json.loads(listed.stdout)} == {"one", "two"}
    assert export("runs").returncode == 0


def test_the_columns_stand_in_one_order_whatever_the_client_sent(
    api: Api, export: RunRunyard
) -> None:
    api.create_run({"id": "mixed", "project": "fish", "command": ["x"]})
    row = {"_timestamp": 2.0, "zoo": 1, "_runtime": 1.0, "loss": 1, "_step": 0}
    files = {"wandb-history.jsonl": {"offset": 0, "content": [json.dumps(row)]}}
    entity = api.run("mixed")["entity"]
    api._connection.post(f"/files/{entity}/fish/mixed/file_stream", {"files": files})
    header = export("export", "-P", "fish").stdout.splitlines()[0]
    assert header == "run,name,project,_step,loss,zoo,_runtime,_timestamp"
    named = export("export", "-P", "fish", "--metric", "zoo", "--metric", "loss").stdout
    assert named.startswith("run,name,project,_step,zoo,loss,_timestamp\n")


def test_a_name_is_no_formula_in_csv_and_unchanged_elsewhere(
    api: Api, export: RunRunyard, tmp_path: Path
) -> None:
    formula = "=cmd|' /C calc'!A1"
    api.create_run({"id": "f1", "project": "formulas", "name": formula, "command": ["x"]})
    for target in (tmp_path / "runs.csv", tmp_path / "runs.jsonl"):
        assert export("export", "f1", "--what", "summary", "-o", str(target)).returncode == 0
    [row] = csv.DictReader(io.StringIO((tmp_path / "runs.csv").read_text()))
    assert row["name"] == f"'{formula}"
    assert json.loads((tmp_path / "runs.jsonl").read_text())["name"] == formula
