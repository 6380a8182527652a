"""Flows of sweeps: the client's own commands and agents, unmodified."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from functools import partial
from typing import Any

from runyard.shapes.runs import RunDetail
from tests.wandb_clients.client import Client, read_sweep_id
from tests.wandb_clients.matrix import flow

# Agents look for work every five seconds, and that cannot be set.
_agent_flow = partial(flow, waits=True)
_PATIENCE = 300

# One of every kind of value; text that YAML could take for something else among them.
_VALUES: dict[str, Any] = {
    "whole": 3,
    "real": 1.5e-05,
    "yes": True,
    "no": False,
    "text": "a b",
    "number_like": "007",
    "nothing": None,
    "many": [1, "two", 0.5],
    "mapping": {"a": {"b": 1}},
}


@_agent_flow("wandb sweep, wandb agent: a grid to its end, values of every kind, nested parameters")
def sweeping(client: Client) -> None:
    said = client.wandb(
        "sweep",
        client.write_sweep(
            {
                "program": "sweep_trial",
                "method": "grid",
                "metric": {"name": "loss", "goal": "minimize"},
                "parameters": {
                    "lr": {"values": [0.5, 0.25]},
                    "opt": {"parameters": {"name": {"value": "adam"}, "beta": {"value": 0.9}}},
                    **{name: {"value": value} for name, value in _VALUES.items()},
                },
            }
        ),
    )
    sweep = read_sweep_id(said)
    assert f"{client.server.url}/{client.entity}/{client.project}/sweeps/{sweep}" in said, said
    with client.agent(sweep) as agent:
        agent.end()
    first, second = runs_of(client, sweep)
    for run, rate in ((first, 0.5), (second, 0.25)):
        config = client.stored(run["id"])["config"]
        argv = config.pop("argv")
        opt = {"beta": 0.9, "name": "adam"}
        # What `wandb.init` has besides stays; in newer clients, inside of a group too.
        assert config.pop("opt") in (opt, {**opt, "old": True})
        assert config == {"lr": rate, "own": "kept", **_VALUES}, config
        assert sorted(argv) == sorted(
            f"--{name}={value}" for name, value in {"lr": rate, "opt": opt, **_VALUES}.items()
        ), argv
        assert client.series(run["id"])["loss"]["values"] == [rate / step for step in range(1, 6)]
    assert state_of(client, sweep) == "FINISHED"


@_agent_flow("three agents share a sweep; --count")
def sweeping_together(client: Client) -> None:
    sweep = client.sweep(
        {
            "program": "sweep_trial",
            "method": "grid",
            "parameters": {"lr": {"values": [1, 2, 3]}, "seed": {"values": [1, 2]}},
        }
    )
    with client.agent(sweep, "--count", "1") as counted:
        counted.end()
    assert len(runs_of(client, sweep)) == 1
    assert state_of(client, sweep) == "RUNNING"
    with ExitStack() as stack:
        for agent in [stack.enter_context(client.agent(sweep)) for _ in range(3)]:
            agent.end()
    settings = [(run["config"]["lr"], run["config"]["seed"]) for run in runs_of(client, sweep)]
    assert sorted(settings) == [(lr, seed) for lr in (1, 2, 3) for seed in (1, 2)], settings
    assert state_of(client, sweep) == "FINISHED"


@_agent_flow("wandb.sweep, wandb.agent(function=...), early termination in it")
def sweeping_by_function(client: Client) -> None:
    said = client.run("sweep_function")
    assert "the agent came back" in said, said
    sweep = said.partition("made ")[2].partition(".")[0]
    _check_early_end(client, sweep)


@_agent_flow("early termination: the run ends as killed, with all its rows")
def sweeping_ends_early(client: Client) -> None:
    sweep = client.sweep(
        {
            "program": "sweep_curve",
            "method": "grid",
            "metric": {"name": "loss", "goal": "minimize"},
            "parameters": {"loss": {"values": [1, 2]}},
            "early_terminate": {"type": "hyperband", "min_iter": 3},
        }
    )
    with client.agent(sweep) as agent:
        agent.end()
    _check_early_end(client, sweep)


def _check_early_end(client: Client, sweep: str) -> None:
    good, bad = runs_of(client, sweep)
    assert (good["state"], bad["state"]) == ("finished", "killed")
    for run in (good, bad):
        logged = len((client.folder / f"rows-{run['id']}").read_text())
        stored = len(client.series(run["id"])["loss"]["steps"])
        # The row that it was stopped in may be logged and not noted.
        assert stored - logged in (0, 1), (stored, logged)
    assert 3 <= len(client.series(bad["id"])["loss"]["steps"]) < 300
    assert state_of(client, sweep) == "FINISHED"


@_agent_flow("wandb sweep --pause, --resume, --stop")
def sweeping_paused(client: Client) -> None:
    sweep = client.sweep(
        {
            "program": "sweep_trial",
            "method": "random",
            "parameters": {"lr": {"min": 0.0, "max": 1.0}},
        }
    )
    path = client.path_of(sweep)
    with client.agent(sweep) as agent:
        agent.wait_until(lambda: runs_of(client, sweep), _PATIENCE)
        client.wandb("sweep", "--pause", path)
        assert state_of(client, sweep) == "PAUSED"
        agent.wait_until(lambda: is_idle(client, sweep), _PATIENCE)
        paused = len(runs_of(client, sweep))
        time.sleep(11)  # Two of the agent's polls, and nothing new.
        assert len(runs_of(client, sweep)) == paused
        client.wandb("sweep", "--resume", path)
        agent.wait_until(lambda: len(runs_of(client, sweep)) > paused, _PATIENCE)
        client.wandb("sweep", "--stop", path)
        agent.end()
    assert {run["state"] for run in runs_of(client, sweep)} == {"finished"}
    assert state_of(client, sweep) == "FINISHED"


@_agent_flow("wandb sweep --cancel: runs are killed, agents leave")
def sweeping_canceled(client: Client) -> None:
    sweep = client.sweep(
        {
            "program": "sweep_curve",
            "method": "grid",
            "parameters": {"loss": {"values": [2, 3]}},
        }
    )
    with client.agent(sweep) as agent:
        agent.wait_until(lambda: any(run["steps"] for run in runs_of(client, sweep)), _PATIENCE)
        client.wandb("sweep", "--cancel", client.path_of(sweep))
        agent.end()
    (run,) = runs_of(client, sweep)
    assert run["state"] == "killed"
    assert 0 < run["steps"] < 300
    assert state_of(client, sweep) == "CANCELED"


@_agent_flow("mark_preempting in a sweep: the same run goes on, its steps unbroken")
def sweeping_preempted(client: Client) -> None:
    sweep = client.sweep(
        {
            "program": "sweep_preempted",
            "method": "grid",
            "parameters": {"lr": {"value": 0.125}},
        }
    )
    with client.agent(sweep) as agent:
        agent.end()
    (run,) = runs_of(client, sweep)
    assert run["state"] == "finished"
    assert client.series(run["id"])["value"]["steps"] == list(range(8))
    assert state_of(client, sweep) == "FINISHED"


@_agent_flow("wandb sweep --update, --name, --project; a file with mistakes")
def sweeping_files(client: Client) -> None:
    bad = {"program": "sweep_trial", "method": "gird", "parameters": {"lr": {"min": 2, "max": 1}}}
    said = client.wandb("sweep", client.write_sweep(bad), code=None)
    assert "grid" in said, said
    assert "lr" in said, said

    config = {"program": "sweep_trial", "method": "grid", "parameters": {"lr": {"values": [1, 2]}}}
    elsewhere = client.wandb("sweep", "--project", "elsewhere", client.write_sweep(config))
    assert f"/{client.entity}/elsewhere/sweeps/" in elsewhere, elsewhere

    sweep = client.sweep(config, "--name", "called so")
    other = {**config, "parameters": {"lr": {"value": 1}, "own": {"value": "new"}}}
    assert client.sweep(other, "--update", client.path_of(sweep)) == sweep
    with client.agent(sweep) as agent:
        agent.end()
    (run,) = runs_of(client, sweep)
    assert (run["config"]["lr"], run["config"]["own"]) == (1, "new")


@_agent_flow("wandb sweep --prior_run: what it has done is not done again", since="0.17.9")
def sweeping_on(client: Client) -> None:
    client.run("sweep_trial")
    tried = client.only_run()["id"]
    config = {"program": "sweep_trial", "method": "grid", "parameters": {"lr": {"values": [1, 2]}}}
    sweep = client.sweep(config, "--prior_run", tried)
    with client.agent(sweep) as agent:
        agent.end()
    first, second = runs_of(client, sweep)
    assert (first["id"], first["config"]["lr"], second["config"]["lr"]) == (tried, 2, 1)


@_agent_flow("public API of sweeps: runs, best_run, config, state, lists")
def sweeping_read(client: Client) -> None:
    sweep = client.sweep(
        {
            "program": "sweep_trial",
            "name": "a sweep's name",
            "method": "grid",
            "metric": {"name": "loss", "goal": "minimize"},
            "parameters": {"lr": {"values": [0.3, 0.1, 0.2]}},
        }
    )
    with client.agent(sweep) as agent:
        agent.end()
    client.run("sweep_reading", sweep)


def runs_of(client: Client, sweep: str) -> list[RunDetail]:
    """The runs of a sweep, the first one first."""
    query = (
        "query($e: String, $p: String, $f: JSONString) { project(name: $p, entityName: $e) "
        '{ runs(filters: $f, order: "+created_at") { edges { node { name } } } } }'
    )
    wanted = json.dumps({"sweep": sweep})
    data = client.graphql(query, e=client.entity, p=client.project, f=wanted)
    return [client.stored(edge["node"]["name"]) for edge in data["project"]["runs"]["edges"]]


def is_idle(client: Client, sweep: str) -> bool:
    return all(run["state"] not in ("pending", "running") for run in runs_of(client, sweep))


def state_of(client: Client, sweep: str) -> str:
    """The sweep's state, as clients are told."""
    query = (
        "query($e: String, $p: String, $s: String!) { project(name: $p, entityName: $e) "
        "{ sweep(sweepName: $s) { state } } }"
    )
    data = client.graphql(query, e=client.entity, p=client.project, s=sweep)
    state: str = data["project"]["sweep"]["state"]
    return state
