"""Stock agents and the server are killed with -9 while a grid is worked on: nothing is lost by it.

An agent that is killed leaves its run behind, alive. The run goes on by itself, and nobody else may
have it meanwhile.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from runyard.client.discover import ensure_server
from runyard.home import Home
from tests.conftest import end_server, isolate, server_pids
from tests.node.terminals import until
from tests.wandb_clients.client import Client, Ended, Program
from tests.wandb_clients.matrix import Session
from tests.wandb_clients.sweeping import runs_of, state_of

pytestmark = pytest.mark.clients

# A grid of 24 and 10 kills with RUNYARD_ALL_CLIENTS=1; few, where every test has to wait for it.
_POINTS, _KILLS = (24, 10) if os.environ.get("RUNYARD_ALL_CLIENTS") else (4, 2)
_VERSIONS = ("0.31.0", "0.17.9")
_LONGEST = 600.0


class Yard:
    """Four agents of two versions on one sweep, each replaced when it is killed."""

    def __init__(self, clients: list[Client], sweep: str, home: Home) -> None:
        self._clients = clients
        self._sweep = sweep
        self._home = home
        self._dead: list[Program] = []
        self._agents = [self._start(client) for client in clients * 2]

    def _start(self, client: Client) -> Program:
        return client.start_agent(self._sweep)

    def kill_agent(self, number: int) -> None:
        self._agents[number].kill()
        self._dead.append(self._agents[number])
        self._agents[number] = self._start(self._clients[number % len(self._clients)])

    def kill_server(self) -> None:
        for pid in server_pids(self._home):
            os.kill(pid, signal.SIGKILL)
        time.sleep(random.random() * 2)
        ensure_server(self._home).api.close()

    def are_through(self) -> bool:
        return all(agent.has_ended() for agent in self._agents)

    def clear_away(self) -> None:
        for agent in (*self._agents, *self._dead):
            agent.clear_away()


def test_every_point_of_a_grid_is_finished_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With the usual lease: a client on a busy machine takes longer to say its first word than a
    # short one lasts, and then the trial is somebody else's as well.
    isolate(tmp_path, monkeypatch)
    ends = tmp_path / "ends"
    ends.touch()
    session = Session(tmp_path)
    clients = [session.client(version, "survivor", ENDS=str(ends)) for version in _VERSIONS]
    try:
        sweep = clients[0].sweep(
            {
                "program": "sweep_survivor",
                "method": "grid",
                "parameters": {"point": {"values": list(range(_POINTS))}},
                # On a busy machine, a program may not find its own client's service.
                "runyard": {"retries": {"program": 5}},
            }
        )
        yard = Yard(clients, sweep, session.home)
        try:
            # The agents come up, and the first of them have their runs.
            until(lambda: len(runs_of(clients[0], sweep)) >= 2, "two runs", _LONGEST)
            _kill_at_random(yard, random.Random(7))
            _wait_for_the_end(yard)
        finally:
            yard.clear_away()
        assert state_of(clients[0], sweep) == "FINISHED"
        runs = runs_of(clients[0], sweep)
        assert {run["state"] for run in runs} == {"finished"}
        assert Counter(run["config"]["point"] for run in runs) == Counter(range(_POINTS))
        assert Counter(map(int, ends.read_text().split())) == Counter(range(_POINTS))
        for run in runs:
            assert clients[0].series(run["id"])["value"]["values"] == list(range(8))
    finally:
        for client in clients:
            client.api.close()
        end_server(session.home)


def _kill_at_random(yard: Yard, dice: random.Random) -> None:
    for number in range(_KILLS):
        if number % 3 == 1:
            yard.kill_server()
        else:
            yard.kill_agent(dice.randrange(4))
        time.sleep(dice.uniform(0.5, 7))


def _wait_for_the_end(yard: Yard) -> None:
    end = time.monotonic() + _LONGEST
    while not yard.are_through():
        if time.monotonic() > end:
            raise Ended(f"agents are still there after {_LONGEST:.0f} s")
        time.sleep(1)
