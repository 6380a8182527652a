"""Versions of data: logged, deduplicated, named, used, downloaded."""

import sys
from pathlib import Path

import wandb

data = Path("data")
(data / "sub").mkdir(parents=True)
(data / "a.txt").write_text("a" * 1000)
(data / "sub" / "b.bin").write_bytes(bytes(range(256)) * 800)


def version(**words):
    artifact = wandb.Artifact("numbers", type="dataset", metadata={"rows": 3}, **words)
    artifact.add_dir(str(data))
    return artifact


with wandb.init(id="maker", job_type="make") as run:
    first = run.log_artifact(version(description="the first"), aliases=["latest", "good"])
    first.wait()
    again = run.log_artifact(version())
    again.wait()
    assert again.version == first.version == "v0", (first.version, again.version)
    (data / "a.txt").write_text("another")
    second = run.log_artifact(version(), aliases=["latest", "best"])
    second.wait()
    assert second.version == "v1", second.version

with wandb.init(id="taker", job_type="take") as run:
    used = run.use_artifact("numbers:good")
    assert used.version == "v0", used.version
    assert used.metadata["rows"] == 3
    folder = Path(used.download("first"))
    assert (folder / "a.txt").read_text() == "a" * 1000
    assert (folder / "sub" / "b.bin").read_bytes() == bytes(range(256)) * 800
    newest = run.use_artifact("numbers:latest")
    assert newest.version == "v1", newest.version
    assert {"latest", "best"} <= set(newest.aliases), newest.aliases
    assert (Path(newest.download("second")) / "a.txt").read_text() == "another"
    newest.verify("second")

api = wandb.Api()
maker = api.run(f"{run.entity}/{run.project}/maker")
assert [item.name for item in maker.logged_artifacts()] == ["numbers:v0", "numbers:v1"]
taker = api.run(f"{run.entity}/{run.project}/taker")
assert {item.name for item in taker.used_artifacts()} == {"numbers:v0", "numbers:v1"}
found = api.artifact(f"{run.entity}/{run.project}/numbers:v0")
assert found.logged_by().id == "maker"
assert [by.id for by in found.used_by()] == ["taker"]
found.aliases.append("kept")
found.save()
assert api.artifact(f"{run.entity}/{run.project}/numbers:kept").version == "v0"
print("checked", file=sys.stderr)
