"""The process that makes suggestions: real, over its pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from runyard.search.worker import Worker

CONFIG = {
    "method": "bayes",
    "metric": {"name": "loss"},
    "parameters": {
        "lr": {"min": 0.0, "max": 1.0},
        "act": {"values": ["relu", {"name": "gelu"}, [1, 2]]},
    },
}
RESULTS = [
    {"number": number, "point": [number % 3, number / 20], "values": [abs(number / 20 - 0.3)]}
    for number in range(20)
]


class Pipe:
    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "runyard.search.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def say(self, what: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write((what if isinstance(what, str) else json.dumps(what)) + "\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return dict(json.loads(self.process.stdout.readline()))

    def suggest(self, **more: Any) -> dict[str, Any]:
        self.say({"suggest": {"pending": [], "count": 1, "number": 0, "id": 1} | more})
        return self.hear()


@pytest.fixture
def worker() -> Iterator[Pipe]:
    pipe = Pipe()
    with pipe.process:
        yield pipe
        pipe.process.kill()


def test_points_for_a_sweep(worker: Pipe) -> None:
    worker.say({"open": {"config": CONFIG, "seed": 3}})
    answer = worker.suggest(count=3, id="a")
    assert answer["id"] == "a"
    assert len(answer["points"]) == 3
    worker.say({"add": RESULTS})
    again = worker.suggest(pending=[[0, 0.3]], count=2, number=20, id="b")
    assert again["id"] == "b"
    for category, place in again["points"]:
        assert category in (0, 1, 2)
        assert 0 <= place <= 1


def test_a_worker_that_is_started_again_goes_on_as_the_first(worker: Pipe) -> None:
    worker.say({"open": {"config": CONFIG, "seed": 3}})
    for result in RESULTS:
        worker.say({"add": [result]})
    worker.suggest(number=19)
    second = Pipe()  # A process too: the numbers of another number of threads differ in the end.
    with second.process:
        second.say({"open": {"config": CONFIG, "seed": 3}})
        second.say({"add": RESULTS})
        asked = {"pending": [[1, 0.5]], "count": 2, "number": 20, "id": 1}
        assert second.suggest(**asked) == worker.suggest(**asked)
        second.process.kill()


def test_bad_lines_are_answered_and_survived(worker: Pipe) -> None:
    worker.say("no json at all")
    assert "error" in worker.hear()
    assert "nothing was opened" in worker.suggest(id=7)["error"]
    worker.say({"open": {"config": {"method": "bayes"}, "seed": 1}})
    assert "error" in worker.hear()
    worker.say({"open": {"config": CONFIG, "seed": 1}})
    worker.say({"add": [{"number": 1, "point": [0.5], "values": [1]}]})
    assert "no point of a space of 2 leaves" in worker.hear()["error"]
    worker.say({"dance": {}})
    assert "open, add, suggest and chance" in worker.hear()["error"]
    worker.say("")
    bad = worker.suggest(pending=[["x", "y"]], id=8)
    assert bad["id"] == 8
    assert "error" in bad
    assert len(worker.suggest(id=9)["points"]) == 1


def test_results_without_values_and_with_odd_ones_are_taken(worker: Pipe) -> None:
    worker.say({"open": {"config": CONFIG, "seed": 1}})
    values: list[Any] = [[], [None], [float("nan")], None, [1.0]]
    worker.say(
        {"add": [{"number": i, "point": [0, 0.1 * i], "values": v} for i, v in enumerate(values)]}
    )
    assert len(worker.suggest(number=5)["points"]) == 1


def test_it_ends_with_its_input_and_is_nice_to_others(worker: Pipe) -> None:
    worker.say({"open": {"config": CONFIG, "seed": 1}})
    worker.suggest()
    assert os.getpriority(os.PRIO_PROCESS, worker.process.pid) > os.getpriority(os.PRIO_PROCESS, 0)
    assert worker.process.stdin is not None
    worker.process.stdin.close()
    assert worker.process.wait(180) == 0


def test_methods_without_a_model_say_so() -> None:
    answer = Worker().answer(
        json.dumps(
            {
                "open": {
                    "config": {"method": "grid", "parameters": {"a": {"values": [1]}}},
                    "seed": 0,
                }
            }
        )
    )
    assert answer is not None
    assert "no engine for method 'grid'" in answer["error"]


def test_it_says_how_likely_something_better_is(worker: Pipe) -> None:
    worker.say({"open": {"config": CONFIG, "seed": 1}})
    worker.say({"add": RESULTS})
    worker.say({"chance": {"id": 3}})
    assert worker.hear() == {"id": 3, "chance": None}  # Twenty results are too few.
    worker.say({"add": [{**result, "number": 20 + at} for at, result in enumerate(RESULTS)]})
    worker.say({"chance": {"id": 4}})
    answer = worker.hear()
    assert answer["id"] == 4
    assert 0 <= answer["chance"] <= 1


def test_a_method_without_a_model_says_nothing_of_chances(worker: Pipe) -> None:
    worker.say({"open": {"config": CONFIG | {"runyard": {"method": "tpe"}}, "seed": 1}})
    worker.say({"add": [*RESULTS, *RESULTS]})
    worker.say({"chance": {"id": 1}})
    assert worker.hear() == {"id": 1, "chance": None}
