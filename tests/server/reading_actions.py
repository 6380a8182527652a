"""What may happen to runs, done to a real server and to a model of each run beside it."""

from __future__ import annotations

import itertools
import json
import math
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import strategies as st

from runyard.server.history.history import HISTORY
from runyard.server.history.joining import join_batches
from runyard.server.runs import runs
from runyard.server.tracker import Tracker
from tests.server.asgi import Client
from tests.server.plain_rows import PlainRun, PlainTable, Row
from tests.server.processes import REWIND, SYNC, Process

Result = TypeVar("Result")
Action = tuple[Any, ...]

# Several of these have the same dotted name.
PATHS = [
    ("loss",), ("val.loss",), ("val", "loss"), ("epoch",),
    ("a.b", "c"), ("a", "b.c"), ("a", "b", "c"),
]  # fmt: skip
NAMES = sorted({".".join(path) for path in PATHS})
ODD_VALUES = [
    math.nan, math.inf, -math.inf, "text", None, True, False, 0, 1, -3, 2**70, [1, 2], -0.5, 1e300,
    {"_type": "image-file", "size": 3},
]  # fmt: skip


@dataclass(frozen=True)
class Key:
    """A key that is in every `every`th row; now and then its value is odd."""

    path: tuple[str, ...]
    every: int
    phase: int
    odd: Any
    odd_every: int

    def put(self, row: Row, number: int) -> None:
        if number % self.every != self.phase % self.every:
            return
        turn = number // self.every
        value = self.odd if turn % self.odd_every == self.odd_every - 1 else _scattered(number)
        place = row
        for key in self.path[:-1]:
            place = place.setdefault(key, {})
        place[self.path[-1]] = value


def _scattered(number: int) -> float:
    """Numbers without order, so that every extreme has a place of its own."""
    return (number * 7919 % 10_007) / 16


some_key = st.builds(
    Key,
    path=st.sampled_from(PATHS),
    every=st.sampled_from([1, 1, 2, 7, 20, 45]),
    phase=st.integers(0, 50),
    odd=st.sampled_from(ODD_VALUES),
    odd_every=st.sampled_from([1, 2, 5, 13, 1000]),
)
some_keys = st.lists(some_key, min_size=1, max_size=4)
# How steps are logged: most rise; some are missing, or no numbers.
some_steps = st.sampled_from(["all", "all", "all", "some", "odd"])
fraction = st.floats(0, 1.2, allow_nan=False)
# Mostly the first: what is to go wrong needs a long story of one run.
run_number = st.sampled_from([0, 0, 0, 1, 2, 3])
batches = st.sampled_from([1, 3, 10, 40, 1000])
counts = st.sampled_from([1, 5, 12, 60, 105])

some_log = st.tuples(
    st.just("log"), run_number, counts, batches, some_keys, some_steps, st.booleans()
)
some_action: st.SearchStrategy[Action] = st.one_of(
    some_log,
    some_log,
    some_log,
    st.tuples(st.just("log_late"), run_number, st.booleans(), batches, some_keys),
    st.tuples(st.just("join"), run_number),
    st.tuples(st.just("send_again"), run_number, fraction),
    st.tuples(st.just("drop_levels"), run_number, st.integers(1, 3)),
    st.tuples(st.just("resume"), run_number, st.booleans()),
    st.tuples(st.just("restart"), run_number),
    st.tuples(st.just("rewind"), run_number, fraction),
    st.tuples(st.just("fork"), run_number, fraction),
    st.tuples(st.just("look"), run_number),
    st.tuples(st.just("sync"), run_number, fraction, st.integers(1, 30), some_keys),
)


class Yard:
    """Runs on a real server, with the model of each beside it."""

    _examples = itertools.count()

    def __init__(self, client: Client, tracker: Tracker) -> None:
        self.client = client
        self.tracker = tracker
        self.write(_clear)
        self.plain: dict[int, PlainRun] = {}
        self._processes: dict[int, Process] = {}
        self._opaque: dict[int, str] = {}
        # Row numbers of the run at which its process begins, and which that process calls 0.
        self._begins: dict[int, int] = {}
        self._offsets: dict[int, int] = {}
        self._logged = 0
        self._prefix = f"x{next(Yard._examples)}-"
        for _ in range(2):
            self._add(PlainRun())

    def do(self, action: Action) -> None:
        name, number, *more = action
        keys = list(self.plain)
        getattr(self, name)(keys[number % len(keys)], *more)

    def log(
        self, run: int, count: int, batch: int, keys: list[Key], steps: str, joined: bool
    ) -> None:
        fresh = [self._row(keys, steps) for _ in range(count)]
        self._send(run, len(self.plain[run].rows), fresh, batch)
        self.plain[run].rows += fresh
        if joined:
            self.join(run)

    def log_late(self, run: int, joined: bool, batch: int, keys: list[Key]) -> None:
        """The second part of some rows comes before the first."""
        # A process's first row tells how it counts; that one is never late.
        self.log(run, 1, 1, keys, "all", joined=False)
        fresh = [self._row(keys, "all") for _ in range(75)]
        start = len(self.plain[run].rows)
        self._send(run, start + 15, fresh[15:], batch)
        if joined:
            self.join(run)
        self._send(run, start, fresh[:15], batch)
        self.plain[run].rows += fresh

    def join(self, run: int) -> None:
        self.write(lambda connection: join_batches(connection, run, HISTORY))

    def send_again(self, run: int, at: float) -> None:
        plain = self.plain[run]
        start = max(self._begins[run], int(at * len(plain.rows)))
        self._send(run, start, plain.rows[start:], 1000)

    def drop_levels(self, run: int, every: int) -> None:
        """As if stored by a server that wrote coarser levels by another rule."""
        self.write(
            lambda connection: connection.execute(
                "DELETE FROM series WHERE run = ? AND level > 0 AND (start + key + level) % ? = 0",
                (run, every),
            )
        )

    def resume(self, run: int, from_zero: bool) -> None:
        self._processes[run].finish()
        self._begin(run, id=self._opaque[run])
        # Some clients count from zero, and some from where they were told that the run ends.
        self._offsets[run] = self._begins[run] if from_zero else 0

    def restart(self, run: int) -> None:
        self._processes[run].finish()
        self.plain[run].restart()
        self._begin(run)

    def rewind(self, run: int, at: float) -> None:
        step = int(at * self._logged)
        process = self._processes[run]
        answer = self.client.graphql(
            REWIND,
            {
                "runName": process.run,
                "project": "birds",
                "metricName": "_step",
                "metricValue": step,
            },
        )
        assert "errors" not in answer, answer
        self.plain[run].rewind(step)
        self._begin(run, id=self._opaque[run])

    def fork(self, run: int, at: float) -> None:
        if len(self.plain) < 4:
            step = int(at * self._logged)
            branch = {"branch_point": {"run_id": self._processes[run].run, "step": step}}
            self._add(PlainRun(self.plain[run].up_to(step)), internals=branch)

    def sync(self, run: int, at: float, count: int, keys: list[Key]) -> None:
        """What a process left on disk: some rows that are here, and some between them."""
        plain, process = self.plain[run], self._processes[run]
        process.finish()
        middle = int(at * self._logged)
        left = [self._row(keys, "all") for _ in range(count)]
        for number, row in enumerate(left):
            row["_step"] = middle + number
        known = [row for row in plain.rows if "_step" in row][-5:]
        synced = process.synced(SYNC)
        synced.start()
        lines = [json.dumps(row) for row in (*known, *left)]
        synced.post({"wandb-history.jsonl": (0, lines)})
        synced.finish()
        plain.sync([*known, *left])
        # Until it has long been silent, the next rows may be its too: they would be merged.
        self.write(
            lambda connection: connection.execute(
                "UPDATE clients SET heard_at = 0 WHERE run = ? AND kind = 'sync'", (run,)
            )
        )
        self._begin(run, id=self._opaque[run])

    def look(self, run: int) -> None:
        """For what is remembered from one question to the next."""
        self.check_names()

    def check_names(self) -> None:
        answer = self.client.get("/api/projects/ada/birds/keys")
        names = set[str]().union(
            *(PlainTable(plain.rows).logged_names() for plain in self.plain.values())
        )
        assert answer.json()["metrics"] == sorted(names)

    def read(self, question: Callable[[sqlite3.Connection], Result]) -> Result:
        return self.tracker._database.read(question).result()

    def write(self, change: Callable[[sqlite3.Connection], Result]) -> Result:
        return self.tracker._database.write(change).result()

    def _add(self, plain: PlainRun, **more: Any) -> None:
        name = f"{self._prefix}{len(self.plain)}"
        process = Process(self.client, name)
        opaque = process.start(**more)["id"]
        row = self.read(lambda connection: runs.by_path(connection, "ada", "birds", name))
        assert row is not None
        run: int = row["key"]
        self.plain[run], self._opaque[run], self._processes[run] = plain, opaque, process
        self._begins[run], self._offsets[run] = len(plain.rows), 0

    def _begin(self, run: int, **more: Any) -> None:
        self._processes[run] = Process(self.client, self._processes[run].run)
        self._processes[run].start(**more)
        self._begins[run], self._offsets[run] = len(self.plain[run].rows), 0

    def _send(self, run: int, start: int, fresh: list[Row], batch: int) -> None:
        batch = max(batch, len(fresh) // 20)  # Each post costs some milliseconds.
        for first in range(0, len(fresh), batch):
            lines = [json.dumps(row) for row in fresh[first : first + batch]]
            offset = start + first - self._offsets[run]
            self._processes[run].post({"wandb-history.jsonl": (offset, lines)})

    def _row(self, keys: list[Key], steps: str) -> Row:
        self._logged += 1
        number = self._logged
        row: Row = {"_step": number, "_timestamp": 1e9 + number / 4}
        if steps == "some" and number % 3 == 0:
            del row["_step"]
        elif steps == "odd" and number % 5 == 0:
            row["_step"] = ODD_VALUES[number // 5 % len(ODD_VALUES)]
        for key in keys:
            key.put(row, number)
        return row


def _clear(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM runs")
    connection.execute("DELETE FROM keys")
