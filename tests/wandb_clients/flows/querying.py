"""The public API: what it lists, in which order, what it reads, changes and deletes."""

import os
from pathlib import Path

import wandb

project = f"{os.environ['WANDB_ENTITY']}/{os.environ['WANDB_PROJECT']}"
for index, (name, rate) in enumerate([("one", 0.1), ("two", 0.2), ("three", 0.3)]):
    run = wandb.init(id=name, name=name, group=f"g{index % 2}", config={"lr": rate, "n": {"m": 1}})
    for step in range(30):
        run.log({"loss": rate * step, "both": step} if step % 2 == 0 else {"loss": rate * step})
    if name == "one":
        Path(run.dir, "note.txt").write_text("a note")
        run.save(str(Path(run.dir, "note.txt")), base_path=run.dir, policy="end")
    run.finish()

api = wandb.Api()


def names(*args, **words):
    return [run.name for run in api.runs(project, *args, **words)]


assert len(api.runs(project)) == 3
assert names(order="+created_at") == ["one", "two", "three"]
assert names(order="-created_at") == ["three", "two", "one"]
assert names(order="-summary_metrics.loss") == ["three", "two", "one"]
assert names({"config.lr": {"$gt": 0.15}}, order="+created_at") == ["two", "three"]
assert names({"$or": [{"display_name": "one"}, {"displayName": "three"}]}, order="+created_at") == [
    "one", "three",
]  # fmt: skip
assert names({"group": "g0", "state": "finished"}, order="+created_at") == ["one", "three"]
assert names({"summary_metrics.loss": {"$lt": 4}}) == ["one"]
assert project.partition("/")[2] in [item.name for item in api.projects(project.partition("/")[0])]

run = api.run(f"{project}/one")
assert run.state == "finished"
assert run.config == {"lr": 0.1, "n": {"m": 1}}, run.config
assert abs(run.summary["loss"] - 2.9) < 1e-9, run.summary["loss"]
assert run.lastHistoryStep == 29
assert len(run.history(pandas=False)) == 30
assert [row["both"] for row in run.history(keys=["both"], pandas=False)] == list(range(0, 30, 2))
assert [row["_step"] for row in run.scan_history()] == list(range(30))
assert [row["both"] for row in run.scan_history(keys=["both"], page_size=10)] == [*range(0, 30, 2)]
files = {file.name: file.size for file in run.files()}
assert files["note.txt"] == 6, files
assert "wandb-metadata.json" in files, files
with run.file("note.txt").download("got", replace=True) as got:
    assert got.read() == "a note"

# Older ones of those that have it get no file, because their scans would read it.
if hasattr(run, "download_history_exports"):
    release = tuple(int(part) for part in wandb.__version__.split(".")[:2])
    exports = run.download_history_exports("exports", require_complete_history=False)
    assert (len(exports.paths), exports.contains_live_data) == (
        (1, False) if release >= (0, 28) else (0, True)
    ), exports
    assert [row["_step"] for row in run.scan_history()] == list(range(30))

if hasattr(run, "update_state"):  # Since 0.25.
    made = api.create_run(project=project.partition("/")[2], entity=project.partition("/")[0])
    made.update_state("pending")
    assert made.update_state("failed")
    assert api.run("/".join(made.path)).state == "failed"
    try:
        run.update_state("pending")
        said = "a finished run is pending again"
    except Exception as error:
        said = str(error)
    assert "cannot go from finished to 'pending'" in said, said
    made.delete()

run.config["added"] = 5
run.tags.append("chosen")
run.summary["checked"] = True
run.summary.update()
run.update()
api.run(f"{project}/two").delete()
api.flush()
assert names(order="+created_at") == ["one", "three"]
assert names({"tags": "chosen"}) == ["one"]
try:
    api.run(f"{project}/two").load(force=True)
    said = "a deleted run is still there"
except Exception as error:
    said = str(error)
assert "ould not find" in said, said
