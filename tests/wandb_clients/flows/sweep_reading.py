"""What the public API says of a sweep that is over: `sweep_reading.py ID`."""

import os
import sys

import wandb

project = f"{os.environ['WANDB_ENTITY']}/{os.environ['WANDB_PROJECT']}"
api = wandb.Api()


def rates(runs):
    # Each by itself: in lists, 0.25 leaves configs empty.
    return [api.run(f"{project}/{run.id}").config["lr"] for run in runs]


sweep = api.sweep(f"{project}/{sys.argv[1]}")
assert sweep.state == "FINISHED", sweep.state
assert sweep.config["parameters"]["lr"] == {"values": [0.3, 0.1, 0.2]}, sweep.config
assert sweep.expected_run_count == 3
assert sweep.id == sys.argv[1]
assert sweep.name == "a sweep's name", sweep.name
assert sweep.url.endswith(f"/{project}/sweeps/{sweep.id}"), sweep.url
assert rates(sweep.runs) == [0.3, 0.1, 0.2]
best = sweep.best_run()
assert rates([best]) == [0.1]
ordered = api.runs(project, {"sweep": sweep.id}, "-config.lr.value")
assert rates(ordered) == [0.3, 0.2, 0.1]
assert best.sweep is None or best.sweep.id == sweep.id  # From 0.31 on: only with the whole run.
assert api.run(f"{project}/{best.id}").sweep.id == sweep.id
entity, name = project.split("/")
listed = next(one for one in api.projects(entity) if one.name == name)
assert sweep.id in [one.id for one in listed.sweeps()], listed.sweeps()
if hasattr(sweep, "agents"):  # In newer clients.
    (agent,) = sweep.agents()
    assert rates(agent.runs()) == [0.3, 0.1, 0.2]
try:
    api.sweep(f"{project}/nowhere0")
    said = "a sweep that never was is there"
except Exception as error:
    said = str(error)
assert "ould not find" in said, said
