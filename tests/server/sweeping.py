"""Sweeps, agents and trials over the API, in as few words as a test needs."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from typing import Any

from tests.server.asgi import KEY, Answer, Client

GRID: Mapping[str, Any] = {
    "method": "grid",
    "program": "train.py",
    "metric": {"name": "loss", "goal": "minimize"},
    "parameters": {"lr": {"values": [0.1, 0.01]}, "size": {"values": [16, 32, 64]}},
}
_tokens = itertools.count()


class Agent:
    """One of our own agents."""

    def __init__(self, client: Client, sweep: int, *, key: str = KEY, token: str = "") -> None:
        self._client = client
        self._key = key
        self.sweep = sweep
        given = {"token": token or f"agent{next(_tokens)}", "host": "node1", "pid": 7, "slots": 1}
        begun = client.post(f"/api/sweeps/{sweep}/agents", given, key=key)
        assert begun.status == 200, begun.text
        self.key: int = begun.json()["agent"]

    def claim(self, token: str = "", wait: float = 0) -> Any:
        return self.say("claim", token=token or f"claim{next(_tokens)}", wait=wait).json()

    def renew(self, *held: Mapping[str, Any]) -> list[dict[str, Any]]:
        running = [{"trial": one["trial"]["number"], "attempt": one["attempt"]} for one in held]
        stop: list[dict[str, Any]] = self.say("renew", running=running).json()["stop"]
        return stop

    def end(self, held: Mapping[str, Any], exit_code: int = 0, cause: str | None = None) -> Any:
        return self.say(
            "ends",
            trial=held["trial"]["number"],
            attempt=held["attempt"],
            exit_code=exit_code,
            cause=cause,
            ended_at=time.time(),
        ).json()["trial"]

    def leave(self) -> None:
        assert self.say("leave", why="done").status == 200

    def say(self, what: str, **content: Any) -> Answer:
        return self._client.post(f"/api/agents/{self.key}/{what}", content, key=self._key)


def create(client: Client, config: Any = GRID, **more: Any) -> Any:
    answer = client.post("/api/sweeps", {"config": config, "project": "birds", **more})
    assert answer.status == 200, answer.text
    return answer.json()


def show(client: Client, sweep: Mapping[str, Any]) -> Any:
    return client.get(f"/api/sweeps/{sweep['key']}").json()


def trials(client: Client, sweep: Mapping[str, Any], **query: Any) -> Any:
    return client.get(f"/api/sweeps/{sweep['key']}/trials", **query).json()


def set_state(client: Client, sweep: Mapping[str, Any], state: str) -> Any:
    return client.post(f"/api/sweeps/{sweep['key']}/state", {"state": state})


def log(client: Client, held: Mapping[str, Any], *values: float, start: int = 0) -> Any:
    """History of a trial's run, as its client would send it; what the server answers."""
    import json

    run = held["run"]
    rows = [
        json.dumps({"_step": start + number, "loss": value}) for number, value in enumerate(values)
    ]
    posted = client.post(
        f"/files/{run['entity']}/{run['project']}/{run['id']}/file_stream",
        {"files": {"wandb-history.jsonl": {"offset": start, "content": rows}}},
    )
    assert posted.status == 200, posted.text
    return posted.json()


def finish_all(agent: Agent, most: int = 100) -> list[Any]:
    """Take trials and finish them until there are no more."""
    done = []
    while (held := agent.claim())["do"] == "run":
        done.append(held)
        agent.end(held)
        assert len(done) <= most
    return done
