"""What a word means: a job, a sweep or a trial, always in the same order."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from runyard.actions import naming
from runyard.cli.completers import complete_job
from runyard.cli.connect import server
from runyard.client.api import Api
from runyard.config.task_list import Line, make_tasks, sweep_config
from runyard.errors import NotFoundError, UsageError
from runyard.home import Home

GRID = {
    "method": "grid", "program": "train.py", "parameters": {"lr": {"values": [1, 2, 3]}},
}  # fmt: skip


@pytest.fixture(scope="module")
def api(module_home: Home) -> Iterator[Api]:
    found = server(module_home, quiet=True)
    yield found
    found.close()


@pytest.fixture(scope="module")
def yard(api: Api) -> dict[str, Any]:
    """A sweep `tune`, a run `tune`, a run `4021`, and jobs 4021 and 77."""
    sweep = api.sweeps.create(GRID, project="birds", name="tune")
    run = api.create_run({"id": "k1", "name": "tune", "project": "birds", "command": ["true"]})
    odd = api.create_run({"id": "4099x", "name": "lark", "project": "birds", "command": ["true"]})
    named = api.create_run({"id": "k2", "name": "555", "project": "birds", "command": ["true"]})
    jobs = [
        api.jobs.record(
            {"cluster": "narval", "job_id": number, "kind": "agents", "name": name,
             "submitted_at": time.time(), "array": "1-9", "tasks": 9}
        )
        for number, name in (("4021", "farm-birds"), ("77", "farm-owls"))
    ]  # fmt: skip
    return {"sweep": sweep, "run": run, "odd": odd, "named": named, "jobs": jobs}


@pytest.mark.parametrize("words", ["4021", "narval/4021", "job:4021", "job:farm-birds", "farm-bi"])
def test_a_job_by_its_number_or_its_name(api: Api, yard: dict[str, Any], words: str) -> None:
    found = naming.find(api, words)
    assert found.job is not None
    assert (found.job["key"], found.task) == (yard["jobs"][0]["key"], None)


def test_a_task_of_a_job(api: Api, yard: dict[str, Any]) -> None:
    found = naming.find(api, "4021_7")
    assert found.job is not None
    assert (found.job["job_id"], found.task) == ("4021", "7")


def test_a_number_is_no_part_of_an_id(api: Api, yard: dict[str, Any]) -> None:
    assert naming.find(api, "4099") == naming.Named(number="4099")
    assert naming.find(api, "4099x").run is not None


def test_a_number_that_is_no_job_may_be_a_whole_name(api: Api, yard: dict[str, Any]) -> None:
    found = naming.find(api, "555").run
    assert found is not None
    assert found["id"] == "k2"


def test_what_is_a_sweep_and_a_run_alike_is_told(api: Api, yard: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        naming.find(api, "tune")
    assert "is a sweep" in caught.value.what
    assert "sweep:tune" in str(caught.value.mend)
    assert naming.find(api, "sweep:tune").sweep is not None
    assert naming.find(api, "trial:tune").run is not None


def test_a_sweep_is_meant_where_its_trial_has_the_same_name(api: Api, yard: dict[str, Any]) -> None:
    listed = sweep_config(make_tasks("submit", [Line(1, "true")]).renamed("first"), "/bin/sh")
    sweep = api.sweeps.create(listed, project="birds", name="first")
    agent = api.sweeps.begin_agent(sweep["key"], token="a", host="n1", pid=1, slots=1)
    api.sweeps.claim(agent["agent"], token="c")
    assert api.run("first")["name"] == "first"
    found = naming.find(api, "first")
    assert found.sweep is not None
    assert (found.sweep["key"], found.run) == (sweep["key"], None)


def test_an_id_is_nearer_than_a_part_of_a_name(api: Api, yard: dict[str, Any]) -> None:
    assert naming.find(api, yard["sweep"]["id"]).sweep is not None
    assert naming.find(api, "k1").run is not None


def test_names_of_several_jobs_are_told(api: Api, yard: dict[str, Any]) -> None:
    with pytest.raises(NotFoundError) as caught:
        naming.find(api, "farm-")
    assert "narval/4021" in caught.value.what
    assert "narval/77" in caught.value.what


@pytest.mark.parametrize(
    "words", ["nothing", "job:nothing", "4021_", "_7", "4021_x", "٣", "/", "-"]
)
def test_what_is_nothing_is_told(api: Api, yard: dict[str, Any], words: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        naming.find(api, words)
    assert caught.value.mend


def test_numbers_are_completed(yard: dict[str, Any]) -> None:
    assert complete_job("40") == ["4021"]
    assert complete_job("") == ["77", "4021"]


def test_agents_do_not_go_to_a_new_sweep_that_runyard_did_not_make(api: Api) -> None:
    """A program's key makes sweeps, as `wandb.sweep()` does; it is not to choose what runs."""
    strange = api.sweeps.create(GRID, project="birds", name="strange")
    with pytest.raises(UsageError, match="was not made by runyard") as refused:
        naming.find_sweep_to_run(api, None)
    assert refused.value.mend == f"if it is yours, name it: {strange['id']}"
    assert naming.find_sweep_to_run(api, "strange")["id"] == strange["id"]
    made = api.sweeps.create(GRID, project="birds", name="other", folder="/here")
    assert naming.find_sweep_to_run(api, None)["id"] == made["id"]
