"""However often a trial is cut off, every step of it is there once, in order; so is its summary.

Hypothesis makes up programs (who log a step and save it, or save it and log it; every step or some;
with `step=`, with a counter of their own, with neither) and cuts: before the client is up, before
the first row, with rows that are only in the client's file, soon after one another, after the last
step. A program that saves first is not stopped between the two (`node/attempt/after_save.py`), and
nothing it logged is missing from the file.

`RUNYARD_CUT_EXAMPLES=10000` tries as many examples instead of a few dozen.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from runyard.home import Home, prepare
from runyard.server.app import create_app
from runyard.server.history.history import HISTORY, read_objects
from runyard.server.tracker import Tracker
from tests.server.asgi import KEY, Client
from tests.server.processes import Process
from tests.server.sweeping import GRID, Agent, create

EXAMPLES = os.environ.get("RUNYARD_CUT_EXAMPLES")
SWEEP: Mapping[str, Any] = {
    **GRID,
    "parameters": {"lr": {"value": 0.1}},
    "runyard": {"retries": {"node": 1000, "program": 1000}},
}
# A metric that is only in every so-many-th row, as of a validation.
SPARSE = 3
# Before so many rows nobody can tell a counter, nor how long a step takes.
BEGINNING = 8

some_cut = st.fixed_dictionaries(
    {
        # Before its client is up; or after so many steps.
        "is_up": st.integers(0, 5).map(bool),
        "steps": st.integers(0, 6),
        # Of a program that logs and then saves: between the two.
        "before_save": st.booleans(),
        # Of its rows, how many the server got; the others are in the file.
        "sent": st.floats(0, 1),
        # The row of a saved step comes later on a busy node: a share of a step.
        "late": st.floats(0, 0.9),
    }
)


@dataclass
class Program:
    saves_first: bool
    every: int
    counts: str
    clock: float = 1_700_000_000.0
    done: int = 0
    furthest: int = 0
    saved: tuple[int, float] | None = None

    def row(self, step: int, number: int) -> dict[str, Any]:
        counter = {"samples": {"samples": 64 * step}, "epoch": {"epoch": step}}.get(self.counts, {})
        own = step if self.counts == "step" else number
        sparse = {} if step % SPARSE else {"w": mark(step)}
        return {"_step": own, "_timestamp": self.clock, "v": mark(step), **sparse, **counter}

    def save(self) -> None:
        if self.done % self.every == 0:
            self.saved = (self.done, self.clock)


def mark(step: int) -> int:
    """Which step it is, and no counter."""
    return step * 7919 % 10007


@dataclass
class Trial:
    """What its agent and its client do."""

    client: Client
    program: Program
    agent: Agent = field(init=False)
    held: Any = field(init=False)
    file: list[dict[str, Any]] = field(default_factory=list)
    """Of the last client that came up."""

    def __post_init__(self) -> None:
        self.agent = Agent(self.client, create(self.client, SWEEP)["key"])
        self.held = self.agent.claim()

    def attempt(self, cut: Mapping[str, Any], *, is_last: bool = False) -> None:
        program = self.program
        program.done, _ = program.saved or (0, 0.0)
        program.clock += 10
        if not cut["is_up"] and not is_last:
            return
        process = Process(self.client, self.held["run"]["id"], started_at=int(program.clock))
        offset = process.start()["historyLineCount"]
        summary = self.client.get("/api/run", name=self.held["run"]["id"]).json()["summary"]
        number = summary.get("_step", -1) + 1 if offset else 0
        self.file = []
        steps = cut["steps"] if is_last else max(cut["steps"], 0 if program.saved else BEGINNING)
        for step in range(steps):
            is_end = step == steps - 1 and not is_last
            self._step(number + step, cut["late"], cut_before_save=is_end and cut["before_save"])
        # Who saves first, counts nothing and could not send its last row may lose it.
        is_clear = program.counts != "nothing" or not program.saves_first
        sent = len(self.file) if is_last or not is_clear else round(cut["sent"] * len(self.file))
        for first in range(0, sent, 3):
            part = self.file[first : min(first + 3, sent)]
            for row in part:
                summary |= row
            lines = [json.dumps(row) for row in part]
            process.post(
                {
                    "wandb-history.jsonl": (offset + first, lines),
                    "wandb-summary.json": (0, [json.dumps(summary)]),
                }
            )
        if is_last:
            process.post({"wandb-summary.json": (0, [json.dumps(summary)])}, complete=True)

    def _step(self, number: int, late: float, *, cut_before_save: bool) -> None:
        program = self.program
        program.clock += 1.0
        program.done += 1
        program.furthest = max(program.furthest, program.done)
        if program.saves_first:
            program.save()
            is_clear = program.done <= BEGINNING or program.counts == "nothing"
            wait = min(late, 0.2) if is_clear else late
            program.clock += wait
            self.file.append(program.row(program.done, number))
            program.clock -= wait
        else:
            self.file.append(program.row(program.done, number))
            program.clock += 0.01
            if not cut_before_save:
                program.save()
            program.clock -= 0.01

    def end(self, more: int) -> None:
        """The last attempt: what has to be done again, and as many steps that are new.

        Where the last cut came after the last step was saved there is nothing left to do.
        """
        saved, _ = self.program.saved or (0, 0.0)
        steps = self.program.furthest - saved + more
        self.attempt({"is_up": True, "steps": steps, "late": 0.0}, is_last=True)
        self.agent.end(self.held, exit_code=0)

    def go_on(self) -> None:
        """The agent is lost, and the trial is claimed again."""
        self.agent.end(self.held, exit_code=-9, cause="node")
        self.held = self.agent.claim()
        saved = self.program.saved and self.program.saved[1]
        owed = self._rewind(saved_at=saved)
        if owed is not None and saved is not None:
            rows = [json.dumps(row) for row in self.file if row["_timestamp"] > owed]
            if rows:
                self._rewind(saved_at=saved, rows=rows)

    def _rewind(self, **content: Any) -> Any:
        trial = {"trial": self.held["trial"]["number"], "attempt": self.held["attempt"]}
        answer = self.agent.say("rewind", **trial, **content)
        assert answer.status == 200, answer.text
        return answer.json()["owed_since"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One for all examples: each has a sweep of its own."""
    home = Home(tmp_path_factory.mktemp("cuts") / "state")
    prepare(home)
    tracker = Tracker(home)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LOGNAME", "ada")
        tracker.open(KEY)
        client = Client(create_app(tracker, stop=lambda: None))
        yield tracker, client
    client.close()
    tracker.close()


def cut(steps: int = 0, *, late: float = 0.0, is_up: bool = True) -> dict[str, Any]:
    """Nothing of it was sent."""
    return {"is_up": is_up, "steps": steps, "before_save": False, "sent": 0.0, "late": late}


# Cut off after the last step was saved: nothing is left to log, and every metric's last value is in
# the row that was put aside.
@example(True, 3, "step", [cut(late=0.5)], 0)
@example(True, 3, "step", [cut(late=0.5)], 1)
# Two cuts in a row after which a row comes back; both rows have one `_step`.
@example(True, 1, "samples", [cut(is_up=False), cut(late=0.5), cut(1, late=0.5)], 4)
@settings(
    max_examples=int(EXAMPLES or 60),
    deadline=None,
    derandomize=EXAMPLES is None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    saves_first=st.booleans(),
    every=st.sampled_from([1, 1, 2, 3]),
    counts=st.sampled_from(["step", "samples", "epoch", "nothing"]),
    cuts=st.lists(some_cut, min_size=1, max_size=6),
    more=st.integers(0, 4),
)
def test_every_step_is_there_once(
    server: tuple[Tracker, Client],
    saves_first: bool,
    every: int,
    counts: str,
    cuts: list[dict[str, Any]],
    more: int,
) -> None:
    tracker, client = server
    trial = Trial(client, Program(saves_first, every, counts))
    for cut in cuts:
        trial.attempt(cut)
        trial.go_on()
    trial.end(more)
    key = trial.held["run"]["key"]
    found = tracker._database.read(lambda db: list(read_objects(db, key, HISTORY))).result()
    shown = [row["v"] for _, row in found if isinstance(row, dict)]
    last = trial.program.furthest
    assert shown == [mark(step) for step in range(1, last + 1)]
    summary = client.get("/api/run", name=trial.held["run"]["id"]).json()["summary"]
    newest = {"v": last, "w": last - last % SPARSE}
    expected = {name: mark(step) for name, step in newest.items() if step}
    assert {name: summary[name] for name in newest if name in summary} == expected
