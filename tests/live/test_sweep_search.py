"""Methods that learn, on a real server with its search processes, over the typed client."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from runyard.client.api import Api
from runyard.client.discover import connect, ensure_server
from runyard.home import Home, read_discovery
from runyard.shapes.sweeps import Claimed
from tests.conftest import run_runyard, server_pids, wait_until

pytestmark = pytest.mark.live

SPACE = {"x": {"min": 0.0, "max": 1.0}, "y": {"min": 0.0, "max": 1.0}}
Measure = Callable[[Mapping[str, Any]], dict[str, float]]


def bowl(args: Mapping[str, Any]) -> dict[str, float]:
    return {"loss": (args["x"] - 0.3) ** 2 + (args["y"] - 0.7) ** 2}


def _config(method: str, run_cap: int, **more: Any) -> dict[str, Any]:
    own = {"method": method, **more.pop("runyard", {})}
    return {
        "method": "random",
        "metric": {"name": "loss", "goal": "minimize"},
        "parameters": SPACE,
        "run_cap": run_cap,
        "runyard": own,
        **more,
    }


def _run(api: Api, sweep: int, measure: Measure = bowl, most: int = 10_000) -> list[Claimed]:
    """An agent that does its trials itself, one after the other."""
    agent = api.sweeps.begin_agent(
        sweep, token=f"{threading.get_ident()}.{time.time()}", host="here", pid=1, slots=1
    )["agent"]
    done: list[Claimed] = []
    while len(done) < most:
        held = api.sweeps.claim(agent, token=f"{agent}.{len(done)}.{time.time()}", wait=5)
        if held["do"] == "exit":
            break
        if held["do"] == "run":
            _log(api, held, measure(held["args"]))
            api.sweeps.end(
                agent, held["trial"]["number"], held["attempt"], exit_code=0, ended_at=time.time()
            )
            done.append(held)
    return done


def _log(api: Api, held: Claimed, values: Mapping[str, float]) -> None:
    """As the trial's own client would."""
    run = held["run"]
    line = json.dumps({"_step": 0, **values})
    api._connection.post(
        f"/files/{run['entity']}/{run['project']}/{run['id']}/file_stream",
        {"files": {"wandb-history.jsonl": {"offset": 0, "content": [line]}}},
    )


def _search_pids(home: Home) -> list[int]:
    (server,) = server_pids(home)
    shown = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,command="], capture_output=True, text=True, check=True
    ).stdout
    lines = [line.split(None, 2) for line in shown.splitlines()]
    return [
        int(pid)
        for pid, parent, command in lines
        if int(parent) == server and "runyard.search.worker" in command
    ]


def test_a_search_learns_and_is_the_same_for_a_seed(state_folder: Home) -> None:
    api = ensure_server(state_folder).api
    drawn = []
    for _ in range(2):
        sweep = api.sweeps.create(_config("bayes", 16), project="bowl", seed=3)
        drawn.append([held["args"] for held in _run(api, sweep["key"])])
        over = api.sweeps.sweep(sweep["key"])
        assert (over["state"], over["counts"]["finished"]) == ("finished", 16)
        assert over["best"] is not None
        assert over["best"]["value"] is not None
        # By chance alone, 16 draws come so near once in forty times.
        assert over["best"]["value"] < 0.0005
    assert drawn[0] == drawn[1]


def test_a_killed_search_is_started_again_from_the_ledger(state_folder: Home) -> None:
    api = ensure_server(state_folder).api
    sweep = api.sweeps.create(_config("tpe", 14), project="bowl", seed=5)
    whole = api.sweeps.create(_config("tpe", 14), project="bowl", seed=5)
    first = _run(api, sweep["key"], most=6)
    (pid,) = _search_pids(state_folder)
    os.kill(pid, signal.SIGKILL)
    rest = _run(api, sweep["key"])
    # It says what it would have said if nothing had happened.
    assert [held["args"] for held in first + rest] == [
        held["args"] for held in _run(api, whole["key"])
    ]


def test_the_server_dies_and_the_search_goes_on_where_it_was(state_folder: Home) -> None:
    api = ensure_server(state_folder).api
    sweep = api.sweeps.create(_config("tpe", 8), project="bowl", seed=5)
    first = _run(api, sweep["key"], most=4)
    searching = _search_pids(state_folder)
    for pid in server_pids(state_folder):
        os.kill(pid, signal.SIGKILL)
    api = ensure_server(state_folder).api
    numbers = [held["trial"]["number"] for held in first + _run(api, sweep["key"])]
    assert numbers == list(range(1, 9))
    # A search whose server is gone is gone too.
    assert not [pid for pid in searching if _is_alive(pid)]


def test_many_agents_and_several_sweeps_at_once(state_folder: Home) -> None:
    ensure_server(state_folder)
    discovery = read_discovery(state_folder)
    assert discovery is not None
    api = connect(discovery)
    sweeps = [
        api.sweeps.create(_config(method, 24), project="bowl", seed=1)
        for method in ("bayes", "qmc")
    ]
    done: list[Claimed] = []

    def work(sweep: int) -> None:
        done.extend(_run(connect(discovery), sweep))

    threads = [
        threading.Thread(target=work, args=(sweep["key"],)) for sweep in sweeps for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert len(done) == 48
    for sweep in sweeps:
        trials = api.sweeps.trials(sweep["key"])
        assert {trial["state"] for trial in trials} == {"finished"}
        points = {(trial["values"]["x"], trial["values"]["y"]) for trial in trials}
        assert len(points) == 24, "a point was suggested twice"
        assert len({trial["name"] for trial in trials}) == 24


def test_seeds_are_searched_by_their_mean_and_prior_runs_are_known(state_folder: Home) -> None:
    api = ensure_server(state_folder).api

    def noisy(args: Mapping[str, Any]) -> dict[str, float]:
        # Around the bowl's value: a search on single trials would be led astray.
        return {"loss": bowl(args)["loss"] + (0.5 if args["seed"] else -0.5)}

    config = _config("bayes", 24, runyard={"seeds": 2})
    sweep = api.sweeps.create(config, project="bowl", seed=2)
    done = _run(api, sweep["key"], noisy)
    settings = [(held["args"]["x"], held["args"]["y"]) for held in done]
    assert settings[::2] == settings[1::2]
    assert [held["args"]["seed"] for held in done] == [0, 1] * 12
    assert min(bowl(held["args"])["loss"] for held in done) < 0.005

    ids = [held["run"]["id"] for held in done if held["args"]["seed"] == 0]
    wiser = api.sweeps.create(_config("bayes", 3), project="bowl", seed=9, prior_runs=ids)
    found = [bowl(held["args"])["loss"] for held in _run(api, wiser["key"])]
    assert min(found) < 0.01, "it began as if it knew nothing"


def test_several_metrics_and_a_limit(state_folder: Home) -> None:
    api = ensure_server(state_folder).api
    config = _config(
        "tpe",
        12,
        runyard={
            "metrics": [{"name": "loss"}, {"name": "speed", "goal": "maximize"}],
            "constraints": [{"metric": "memory", "max": 0.5}],
        },
    )
    del config["metric"]

    def measure(args: Mapping[str, Any]) -> dict[str, float]:
        return {**bowl(args), "speed": args["x"], "memory": args["y"]}

    sweep = api.sweeps.create(config, project="bowl", seed=1)
    done = _run(api, sweep["key"], measure)
    assert len(done) == 12
    trials = api.sweeps.trials(sweep["key"])
    assert all(set(trial["metrics"]) == {"loss", "speed", "memory"} for trial in trials)
    best = api.sweeps.sweep(sweep["key"])["best"]
    allowed = [trial for trial in trials if trial["metrics"]["memory"] <= 0.5]
    assert best is not None
    assert best["number"] == min(allowed, key=lambda trial: trial["metrics"]["loss"])["number"]


def _is_alive(pid: int) -> bool:
    for _ in range(50):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.1)
    return True


def test_a_search_at_its_end_says_so(state_folder: Home) -> None:
    """A smooth function of one parameter: after fifty trials there is nothing left to find."""
    api = ensure_server(state_folder).api
    config = _config("bayes", 200, parameters={"x": {"min": 0.0, "max": 1.0}})
    sweep = api.sweeps.create(config, project="bowl", seed=1)

    def measure(args: Mapping[str, Any]) -> dict[str, float]:
        return {"loss": 1 + (args["x"] - 0.3) ** 2}

    _run(api, sweep["key"], measure, most=20)
    assert api.sweeps.find(sweep["id"])["chance"] is None
    _run(api, sweep["key"], measure, most=35)
    wait_until(lambda: api.sweeps.find(sweep["id"])["chance"] is not None)
    shown = run_runyard("status", sweep["id"])
    assert (
        "stop? The search expects no setting that beats the best by more than 1 %" in shown.stdout
    )
    assert f"runyard cancel --finish {sweep['id']}" in shown.stdout
    stopped = run_runyard("cancel", "--finish", sweep["id"])
    assert stopped.returncode == 0, stopped.stderr
    assert api.sweeps.find(sweep["id"])["chance"] is None
    assert "stop?" not in run_runyard("status", sweep["id"]).stdout
