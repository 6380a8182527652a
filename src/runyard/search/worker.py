"""The process that makes a sweep's suggestions: `python -m runyard.search.worker`.

JSON lines. In: `{"open": {"config": <the sweep>, "seed": n}}`, `{"add": [<results>]}`,
`{"suggest": {"pending": [<points>], "count": n, "number": k, "id": q}}`, `{"chance": {"id": q}}`.
Out: `{"id": q, "points": [...]}`, `{"id": q, "chance": p}` (null: the engine cannot say), and
`{"error": text}` (with the id, if there is one) for a line that could not be used.
Lines are answered in order; the process ends with its input.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from runyard.search.engines.result import Engine, Result
    from runyard.search.space import Point, Space

NICENESS = 5
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


# By how much of the best value another one has to be better.
SHARE = 0.01


class Unusable(Exception):
    """A line that the worker cannot use."""


class Worker:
    def __init__(self) -> None:
        self.engine: Engine | None = None
        self.space: Space | None = None

    def answer(self, line: str) -> dict[str, Any] | None:
        """The answer to a line; None for no answer. Never raises: the next line may be fine."""
        request_id: Any = None
        try:
            message = json.loads(line)
            if not isinstance(message, dict) or len(message) != 1:
                raise Unusable("a line is one of open, add, suggest and chance")
            ((word, what),) = message.items()
            request_id = what.get("id") if isinstance(what, dict) else None
            return self.act(word, what)
        except Exception as error:  # whatever a library raises, the sweep continues
            said_of = {"error": f"{type(error).__name__}: {error}"}
            return said_of if request_id is None else {"id": request_id, **said_of}

    def act(self, word: str, what: Any) -> dict[str, Any] | None:
        if word == "open":
            self.open(what["config"], int(what["seed"]))
            return None
        if self.engine is None or self.space is None:
            raise Unusable("nothing was opened yet")
        if word == "add":
            self.engine.add([read_result(each, self.space) for each in what])
            return None
        if word == "chance":
            # Other methods have no model of what was not tried.
            judge = getattr(self.engine, "chance_of_better", None)
            return {"id": what.get("id"), "chance": judge(SHARE) if judge else None}
        if word != "suggest":
            raise Unusable(f"there is no {word!r}: a line is one of open, add, suggest and chance")
        pending = [read_point(each, self.space) for each in what["pending"]]
        points = self.engine.suggest(pending, int(what["count"]), int(what["number"]))
        return {"id": what.get("id"), "points": points}

    def open(self, config: Any, seed: int) -> None:
        from runyard.search.engines.choose import make_engine
        from runyard.search.sweep import read_sweep

        sweep, problems = read_sweep(config)
        if sweep is None:
            raise Unusable("; ".join(problem.message for problem in problems if problem.is_error))
        self.engine = make_engine(sweep.method, sweep.space, abs(seed), len(sweep.metrics))
        self.space = sweep.space


def read_point(coordinates: Sequence[Any], space: Space) -> Point:
    """A point with one valid coordinate for each leaf of the space."""
    if len(coordinates) != len(space.leaves):
        raise Unusable(f"{coordinates!r} is no point of a space of {len(space.leaves)} leaves")
    point = []
    for leaf, coordinate in zip(space.leaves, map(float, coordinates), strict=True):
        most = float(max(0, leaf.categories - 1)) if leaf.is_categorical else 1.0
        if not math.isfinite(coordinate):
            raise Unusable(f"{coordinates!r} holds no number for {leaf.name}")
        coordinate = min(most, max(0.0, coordinate))
        point.append(float(round(coordinate)) if leaf.is_categorical else coordinate)
    return tuple(point)


def read_result(record: Mapping[str, Any], space: Space) -> Result:
    from runyard.search.engines.result import Result

    return Result(
        int(record["number"]),
        read_point(record["point"], space),
        tuple(read_number(value) for value in record.get("values") or ()),
        tuple(read_number(value) for value in record.get("constraints") or ()),
    )


def read_number(value: Any) -> float:
    return math.nan if value is None else float(value)


def serve(lines: Iterator[str], out: TextIO) -> None:
    worker = Worker()
    for line in lines:
        answer = worker.answer(line) if line.strip() else None
        if answer is not None:
            out.write(json.dumps(answer) + "\n")
            out.flush()


def main() -> None:
    for variable in ONE_THREAD:
        os.environ[variable] = "1"  # before numpy is loaded: one sweep, one core
    os.nice(NICENESS)
    # Output of libraries must not mix with the answers.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with out:
        serve(iter(sys.stdin.readline, ""), out)


if __name__ == "__main__":
    main()
