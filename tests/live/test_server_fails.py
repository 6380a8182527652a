"""A server with a bug: agents say what it answers, ask ever less often, and leave in the end."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard.client.discover import find_server
from runyard.home import Home
from runyard.node.link.channel import Answer, Channel
from tests.conftest import RunRunyard
from tests.live.programs import PYTHON
from tests.live.sweeping import WITHOUT_WANDB, sweep_json, trials_of, with_python, write_sweep
from tests.node.terminals import until

LONG = 120.0


@pytest.fixture
def failing(state_folder: Home) -> Iterator[Path]:
    """A server that cannot be told of ends as long as this file is there."""
    bug = state_folder.path.parent / "fails"
    bug.touch()
    server = subprocess.Popen(
        [PYTHON, "-m", "tests.live.failing_server", "--home", state_folder.path],
        cwd=Path(__file__).parents[2],
    )
    until(lambda: find_server(state_folder) is not None, "the server", LONG)
    try:
        yield bug
    finally:
        server.terminate()
        server.wait()


@pytest.mark.live
def test_an_agent_does_not_stay_to_the_end_of_its_job(
    failing: Path, runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    file = write_sweep(tmp_path / "p", WITHOUT_WANDB, parameters={"seconds": {"values": [0, 0.01]}})
    env = {**with_python(), "RUNYARD_TROUBLE_SECONDS": "6"}
    ended = runyard("sweep", str(file), "--time", "1h", env=env, timeout=LONG)
    assert ended.returncode == 1, ended.stderr
    said = "/ends with 503: the server has trouble of its own (KeyError)"
    assert f"{said}; its log says more; it is asked again" in ended.stderr
    assert "gives back what it had" in ended.stderr
    assert {trial["state"] for trial in trials_of(state_folder)} == {"waiting"}

    failing.unlink()
    again = runyard("sweep", sweep_json(runyard)["id"], env=env, timeout=LONG)
    assert again.returncode == 0, again.stderr
    assert sweep_json(runyard)["counts"]["finished"] == 2


class _Clock:
    """A loop that notes for how long somebody wants to wait, and never comes back. A double: the
    real pauses take minutes."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def after(self, seconds: float, _call: object) -> None:
        self.pauses.append(seconds)


class _Nowhere:
    found = None

    def find(self) -> None:
        return None

    def is_silent(self) -> None:
        pass


@pytest.mark.parametrize("status", [500, 502, 503, 504, 429])
def test_the_waits_grow(status: int) -> None:
    clock: Any = _Clock()
    place: Any = _Nowhere()
    channel = Channel(clock, place)
    answers: list[Answer] = []
    channel.post("/api/agents/1/ends?x=1", {}, answers.append)
    clock.pauses.clear()
    for _ in range(10):
        channel._retry = None
        channel._take(Answer(status, json.dumps({"error": "a bug"}).encode()))
    assert clock.pauses == sorted(clock.pauses)
    assert (clock.pauses[0] < 1, clock.pauses[-1]) == (True, 30.0)
    assert channel.trouble is not None
    assert (channel.trouble.path, channel.trouble.status) == ("/api/agents/1/ends", status)
    assert channel.trouble.error == "a bug"
    assert not answers, "what was asked is asked again"
    channel._take(Answer(200, b"{}"))
    assert len(answers) == 1
    assert channel.trouble is None
