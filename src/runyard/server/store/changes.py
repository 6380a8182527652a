"""What has changed, and when: a number that rises with every commit that changed something.

Kept in memory. The writer's connection has temporary triggers that note the rows a transaction
touches in a temporary table; once it is committed, those get the next number. So every way of
writing is covered, what is rolled back is no change, and nothing is stored. Of each kind the last
changes are remembered, so a server that runs for months does not grow. Who asks from before them,
or from before the server's last start, reads everything.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class Kind(str, Enum):
    """What can change."""

    RUN = "run"
    DELETED = "deleted"
    MOVED = "moved"
    REWOUND = "rewound"
    HISTORY = "history"
    CONSOLE = "console"
    FILES = "files"
    SWEEP = "sweep"
    TRIAL = "trial"
    AGENT = "agent"
    USAGE = "usage"
    PROJECT = "project"
    REPORT = "report"
    JOB = "job"


# Which columns of a run the page shows. A heartbeat is none of them.
_RUN = (
    'name, state, exit_code, config, summary, tags, notes, "group", job_type, sweep, host, program,'
    " project, started_at, ended_at, stop_asked"
)
_TRIAL = "state, cause, agent, attempts, run, stop, measured, score, exit_code"
_PROJECT = "(SELECT project FROM runs WHERE key = NEW.run)"
_SWEEP = "(SELECT project FROM sweeps WHERE key = NEW.sweep)"

# (event, table, kind, key, project, detail)
_TOLD = (
    ("INSERT", "projects", Kind.PROJECT, "NEW.key", "NEW.key", "0"),
    ("INSERT", "runs", Kind.RUN, "NEW.key", "NEW.project", "0"),
    (f"UPDATE OF {_RUN}", "runs", Kind.RUN, "NEW.key", "NEW.project", "0"),
    ("DELETE", "runs", Kind.DELETED, "OLD.key", "OLD.project", "0"),
    # For each project that a run has left: the one where it is now is told of it as a run's change.
    ("UPDATE OF project", "runs", Kind.MOVED, "OLD.key", "OLD.project", "OLD.project"),
    ("INSERT", "batches", Kind.HISTORY, "NEW.run", _PROJECT, "0"),
    # A rewind or a restart, which takes rows away.
    ("INSERT", "archives", Kind.HISTORY, "NEW.run", _PROJECT, "0"),
    ("INSERT", "archives", Kind.REWOUND, "NEW.run", _PROJECT, "0"),
    # The end of a rewind, which is made in slices.
    ("UPDATE", "archives", Kind.HISTORY, "NEW.run", _PROJECT, "0"),
    ("UPDATE", "archives", Kind.REWOUND, "NEW.run", _PROJECT, "0"),
    # Rows of a fork's parent, or of a sync.
    ("INSERT", "segments", Kind.HISTORY, "NEW.run", _PROJECT, "0"),
    ("INSERT", "attempts", Kind.RUN, "NEW.run", _PROJECT, "0"),
    ("UPDATE OF ended_at, cause", "attempts", Kind.RUN, "NEW.run", _PROJECT, "0"),
    ("UPDATE OF usage", "attempts", Kind.USAGE, "NEW.run", _PROJECT, "0"),
    ("INSERT", "console", Kind.CONSOLE, "NEW.run", _PROJECT, "0"),
    ("INSERT", "lines", Kind.CONSOLE, "NEW.run", _PROJECT, "0"),
    ("INSERT", "files", Kind.FILES, "NEW.run", _PROJECT, "0"),
    ("UPDATE", "files", Kind.FILES, "NEW.run", _PROJECT, "0"),
    ("INSERT", "sweeps", Kind.SWEEP, "NEW.key", "NEW.project", "0"),
    ("UPDATE", "sweeps", Kind.SWEEP, "NEW.key", "NEW.project", "0"),
    ("INSERT", "trials", Kind.TRIAL, "NEW.sweep", _SWEEP, "NEW.number"),
    (f"UPDATE OF {_TRIAL}", "trials", Kind.TRIAL, "NEW.sweep", _SWEEP, "NEW.number"),
    ("INSERT", "jobs", Kind.JOB, "NEW.key", "0", "0"),
    ("UPDATE", "jobs", Kind.JOB, "NEW.key", "0", "0"),
    ("INSERT", "reports", Kind.REPORT, "NEW.key", "NEW.project", "0"),
    ("UPDATE", "reports", Kind.REPORT, "NEW.key", "NEW.project", "0"),
    ("DELETE", "reports", Kind.REPORT, "OLD.key", "OLD.project", "0"),
    ("INSERT", "agents", Kind.AGENT, "NEW.key", _SWEEP, "NEW.sweep"),
    ("UPDATE OF left_at, slots, packing", "agents", Kind.AGENT, "NEW.key", _SWEEP, "NEW.sweep"),
)

# A sign of life says anew that an agent has not left.
_ONLY_IF = {
    ("UPDATE OF left_at, slots, packing", "agents"): (
        "WHEN OLD.left_at IS NOT NEW.left_at OR OLD.packing IS NOT NEW.packing"
    ),
    ("UPDATE OF project", "runs"): "WHEN OLD.project IS NOT NEW.project",
}

Key = tuple[int, int]

# Of each kind. A page that missed so many asks for its whole list anyway.
_MOST_RECORDS = 20_000


@dataclass(frozen=True)
class Change:
    """`detail` is a trial's number, an agent's sweep, the project a run left; 0 elsewhere."""

    kind: Kind
    key: int
    project: int
    detail: int


class Noted(NamedTuple):
    """A change that is not committed yet; `kind` is the value of one."""

    kind: str
    key: int
    project: int
    detail: int


class Changes:
    """One for a database. The writer thread tells, everybody may ask."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        # Rises over restarts too, and stays a whole number in a browser.
        self.first = int(clock() * 1e6)
        self.revision = self.first
        self._lock = threading.Lock()
        # The last change of each thing, the newest at the end.
        self._records: dict[Kind, OrderedDict[Key, tuple[int, int]]] = {
            kind: OrderedDict() for kind in Kind
        }
        # The number of the newest change of each kind that is no longer among them.
        self._forgotten = dict.fromkeys(Kind, self.first)
        self._projects: dict[tuple[int, Kind], int] = {}
        self._kinds: dict[Kind, int] = {}
        self._listeners: list[Callable[[], None]] = []

    def attach(self, connection: sqlite3.Connection) -> None:
        """Have the writer's connection tell what it touches."""
        # In SQL: a call of Python for each row would wait for the other threads each time.
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(
            "CREATE TEMP TABLE noted (kind TEXT, key INTEGER, project INTEGER, detail INTEGER, "
            "PRIMARY KEY (kind, key, project, detail)) WITHOUT ROWID"
        )
        for number, (event, table, kind, key, project, detail) in enumerate(_TOLD):
            connection.execute(
                f"CREATE TEMP TRIGGER told_{number} AFTER {event} ON main.{table} "
                f"{_ONLY_IF.get((event, table), '')} BEGIN "
                f"INSERT INTO noted SELECT '{kind.value}', {key}, coalesce({project}, 0), {detail} "
                "WHERE true ON CONFLICT DO NOTHING; END"
            )

    def take(self, connection: sqlite3.Connection) -> list[Noted]:
        """What the open transaction has noted, for `publish` when it is committed."""
        noted = [Noted(*row) for row in connection.execute("SELECT * FROM temp.noted")]
        if noted:
            connection.execute("DELETE FROM temp.noted")
        return noted

    def publish(self, noted: Collection[Noted]) -> None:
        """This is committed."""
        if not noted:
            return
        with self._lock:
            revision = self.revision + 1
            for name, key, project, detail in noted:
                kind = Kind(name)
                last = self._records[kind]
                place = (key, detail)
                last[place] = (revision, project)
                last.move_to_end(place)
                self._projects[project, kind] = revision
                self._kinds[kind] = revision
                if kind is Kind.DELETED:
                    for other in (Kind.RUN, Kind.HISTORY, Kind.CONSOLE, Kind.FILES):
                        self._records[other].pop((key, 0), None)
                # Also into the trash. The project that it left hears nothing more of it.
                if kind is Kind.MOVED:
                    for other in (Kind.HISTORY, Kind.CONSOLE, Kind.FILES):
                        if self._records[other].get((key, 0), (0, None))[1] == project:
                            del self._records[other][key, 0]
            for kind, last in self._records.items():
                while len(last) > _MOST_RECORDS:
                    self._forgotten[kind] = last.popitem(last=False)[1][0]
            # Last: who reads this number finds everything up to it.
            self.revision = revision
        for listener in tuple(self._listeners):
            listener()

    def since(self, revision: int, kinds: Collection[Kind]) -> list[Change] | None:
        """What changed after `revision`, each thing once; None if not all of it is remembered."""
        changes: list[Change] = []
        with self._lock:
            if revision > self.revision:
                return None
            for kind in kinds:
                if revision < self._forgotten[kind]:
                    return None
                for (key, detail), (changed_at, project) in reversed(self._records[kind].items()):
                    if changed_at <= revision:
                        break
                    changes.append(Change(kind, key, project, detail))
        return changes

    def of_run(self, run: int, kinds: Collection[Kind]) -> int:
        """The number of a run's last change of these kinds. Too high where it is forgotten."""
        with self._lock:
            return max(
                self._records[kind].get((run, 0), (self._forgotten[kind],))[0] for kind in kinds
            )

    def of_project(self, project: int, kinds: Collection[Kind]) -> int:
        """The number of a project's last change of these kinds."""
        return max(self._projects.get((project, kind), self.first) for kind in kinds)

    def of_all(self, kinds: Collection[Kind]) -> int:
        return max(self._kinds.get(kind, self.first) for kind in kinds)

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call back after each commit, in the writer's thread; what is returned ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)
