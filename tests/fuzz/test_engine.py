"""That the machine finds what is wrong: faults put into targets of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from tests.fuzz import engine
from tests.fuzz.engine import Figures, explore
from tests.fuzz.mutations import expand
from tests.fuzz.server import Routes


class Faulty:
    """A target of one function."""

    name = "faulty"
    words = ("deep",)

    def __init__(self, function: Callable[[Any], None]) -> None:
        self._function = function

    def seeds(self) -> Sequence[Any]:
        return [{"a": {"count": 3}, "b": ["x", "y"]}]

    def place(self, case: Any) -> str:
        return "here"

    def run(self, case: Any) -> None:
        self._function(case)

    def renew(self) -> None:
        return

    def close(self) -> None:
        return


def _figures(function: Callable[[Any], None], executions: int = 80) -> Figures:
    return explore(Faulty(function), beginning=1, executions=executions)


def test_an_error_is_found_once_and_made_small() -> None:
    def read(case: Any) -> None:
        if isinstance(case, dict) and isinstance(case.get("b"), dict):
            raise KeyError("b")

    figures = _figures(read)
    assert [kind.partition(" in ")[0] for kind in figures.findings] == ["KeyError"]
    (case,) = figures.findings.values()
    assert list(case) == ["b"]


def test_what_takes_time_is_found(monkeypatch: Any) -> None:
    monkeypatch.setattr("tests.fuzz.limits.MOST_SECONDS", 0.02)

    def read(case: Any) -> None:
        if isinstance(case, dict) and "a" not in case:
            sum(range(3_000_000))

    assert "here takes long" in _figures(read).findings


def test_what_takes_memory_is_found() -> None:
    def read(case: Any) -> None:
        if isinstance(case, dict) and "a" not in case:
            assert len(bytearray(110 << 20))

    assert "here takes memory" in _figures(read, 40).findings


def test_a_route_that_fails_is_found(monkeypatch: Any) -> None:
    from runyard.server.jobs import jobs

    def broken(*_: Any, **__: Any) -> Any:
        raise TypeError("put in by a test")

    monkeypatch.setattr(jobs, "newest", broken)
    target = Routes()
    try:
        figures = Figures()
        engine._try(target, {"path": "/api/jobs"}, figures, None)
    finally:
        target.close()
    assert any("TypeError" in kind for kind in figures.findings), figures.details


def test_marks_are_written_out() -> None:
    text = expand(json.dumps({"a": "@deep:3", "b": "@digits:4", "c": "@long:2", "d": "@list:1"}))
    assert json.loads(text) == {"a": [[[]]], "b": 7777, "c": "aa", "d": [1, 1]}
    assert expand("x: @digits:3") == "x: 777"
