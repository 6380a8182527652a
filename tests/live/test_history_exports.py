"""`run.download_history_exports()` of the stock client, beside its own `scan_history`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import RunRunyard
from tests.live.programs import PYTHON, write_program

pytestmark = pytest.mark.live

COMPARE = """
import json
import time
import pyarrow.parquet
import wandb

steps = [*range(20), 1500, 1501, 4000]
# The first run of a program ends with the program, and only a run that has ended has a file.
wandb.init(project="birds", id="first").finish()
run = wandb.init(project="birds", id="mixed")
for step in steps:
    row = {"loss": 1 / (step + 1), "count": step}
    if step % 3 == 0:
        row["third"] = step
    row |= {
        2: {"loss": float("nan"), "infinite": float("inf")},
        5: {"nest": {"a": {"b": 1.5}, "c": "x"}},
        7: {"nest": {"a": {"b": 2, "d": True}}, "mixed": 1},
        1500: {"text": "gr\\u00fcn", "mixed": "one", "list": [1, 2.5]},
        1501: {"histogram": wandb.Histogram([1, 2, 3]), "mixed": [True], "yes": True},
        4000: {"page": wandb.Html("<p>x"), "table": wandb.Table(["a"], [[1]]), "nothing": None},
    }.get(step, {})
    run.log(row, step=step)

api = wandb.Api()
path = f"{run.entity}/birds/mixed"
while not api.run(path).history(pandas=False):
    time.sleep(0.2)
try:
    api.run(path).download_history_exports("early")
    raise AssertionError("the run has not ended")
except Exception as error:
    assert type(error).__name__ == "IncompleteRunHistoryError", repr(error)
run.finish()

def text(rows):
    return json.dumps(rows, sort_keys=True)

def present(value):
    if isinstance(value, dict):
        return {key: present(part) for key, part in value.items() if part is not None}
    return float(value) if type(value) is int else value

def scans():
    run = wandb.Api().run(path)
    return text([
        list(run.scan_history()),
        list(run.scan_history(keys=["third"], page_size=7)),
        list(run.scan_history(min_step=3, max_step=1501)),
        list(run.scan_history(use_cache=False)),
    ])

before = scans()
rows = list(wandb.Api().run(path).scan_history())
assert [row["_step"] for row in rows] == steps

run = wandb.Api().run(path)
done = run.download_history_exports("exports")
assert not done.contains_live_data and not done.errors and len(done.paths) == 1, done
table = pyarrow.parquet.read_table(done.paths[0])
found = [
    {**row, "mixed": None if row["mixed"] is None else json.loads(row["mixed"])}
    for row in table.to_pylist()
]
for row, copy in zip(rows, found, strict=True):
    # Numbers in lists are floats where one of them is.
    row, copy = (text(present({**each, "list": None, "histogram": None})) for each in (row, copy))
    assert row == copy, (row, copy)
assert found[-3]["list"] == [1.0, 2.5]
assert found[-2]["histogram"]["values"] == rows[-2]["histogram"]["values"]
assert scans() == before

with wandb.init(project="birds", id="mixed", resume="must") as run:
    run.log({"loss": 7}, step=4001)
more = list(wandb.Api().run(path).scan_history())
assert text(more[:-1]) == text(rows) and more[-1]["loss"] == 7
done = wandb.Api().run(path).download_history_exports("again")
assert pyarrow.parquet.read_table(done.paths[0]).num_rows == len(steps) + 1
"""


def test_a_downloaded_history_has_the_rows_of_a_scan_and_leaves_scans_alone(
    runyard: RunRunyard, tmp_path: Path
) -> None:
    program = write_program(tmp_path / "project", COMPARE)
    done = runyard(
        *("run", "-q", "--", PYTHON, str(program)),
        env={"WANDB_CACHE_DIR": str(tmp_path / "cache")},
        cwd=program.parent,
    )
    assert done.returncode == 0, done.stdout + done.stderr
