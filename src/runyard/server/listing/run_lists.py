"""Lists that clients read page by page, remembered from one page to the next.

To find the runs that pass a filter, all runs of a project are looked at; a client that reads 10,000
of 100,000 in pages of 50 would have that done two hundred times. So a list is kept as it stands in
its order, and brought up to date by the runs that have changed since.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from sqlite3 import Connection

from runyard.server.listing import run_listing
from runyard.server.listing.field_memory import FieldMemory
from runyard.server.listing.field_paths import Field
from runyard.server.listing.filters import EVERYTHING, Condition, fields_of
from runyard.server.listing.orders import CREATED, Order, Ordered, Place
from runyard.server.listing.run_listing import Page
from runyard.server.store.changes import Changes, Kind
from runyard.server.store.database import must_be_short

SHOWN = (Kind.RUN, Kind.DELETED, Kind.MOVED)
# A change of these is not told (`store/changes.py`): a list that they decide is made anew.
_UNTOLD = {"heartbeat_at", "commit_hash", "username"}
_MOST_LISTS, _LONGEST_FILTER = 16, 10_000
# About 50 MB of them.
_MOST_PLACES = 300_000
# So many rows without their JSON take as long as one with it.
_ROWS_A_TEXT = 20


@dataclass(frozen=True)
class Filter:
    """A condition, and the text that it was read from."""

    text: str
    condition: Condition


@dataclass(frozen=True)
class _List:
    revision: int
    runs: Ordered


class RunLists:
    """One for a database; threads may share it."""

    def __init__(self, changes: Changes, memory: FieldMemory) -> None:
        self._changes = changes
        self._memory = memory
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[int, str, Field], _List] = OrderedDict()

    def count(self, db: Connection, project: int, filter: Filter) -> int:
        if filter.condition == EVERYTHING:
            return run_listing.count_all(db, project)
        return len(self._list(db, project, filter, CREATED))

    def read_page(
        self,
        db: Connection,
        project: int,
        filter: Filter,
        order: Order,
        after: Place | None,
        first: int,
    ) -> Page:
        """At most `first` runs behind `after`."""
        if filter.condition == EVERYTHING and order.field == CREATED:
            places = run_listing.by_creation(db, project, order, after, first + 1)
        else:
            runs = self._list(db, project, filter, order.field)
            places = runs.page(after, first + 1, descending=order.descending)
        return run_listing.rows_at(db, places, first)

    def _list(self, db: Connection, project: int, filter: Filter, field: Field) -> Ordered:
        # Before anything is read: what is written meanwhile comes with the next question.
        revision = self._changes.revision
        place = (project, filter.text, field)
        with self._lock:
            known = self._known.get(place)
        changed = None if known is None else self._changed(project, known.revision)
        if known is None or changed is None:
            must_be_short(run_listing.count_all(db, project) // _ROWS_A_TEXT)
            runs = Ordered(self._places(db, project, filter, field, None))
        elif changed:
            runs = known.runs.replaced(changed, self._places(db, project, filter, field, changed))
        else:
            runs = known.runs
        decided_by = {field.column, *(test.column for test in fields_of(filter.condition))}
        if not decided_by & _UNTOLD and len(filter.text) <= _LONGEST_FILTER:
            with self._lock:
                self._known[place] = _List(revision, runs)
                self._known.move_to_end(place)
                self._forget()
        return runs

    def _places(
        self, db: Connection, project: int, filter: Filter, field: Field, keys: set[int] | None
    ) -> list[Place]:
        return run_listing.places(db, self._memory, project, filter.condition, field, keys)

    def _changed(self, project: int, since: int) -> set[int] | None:
        """None: look at all of them."""
        news = self._changes.since(since, SHOWN)
        return None if news is None else {run.key for run in news if run.project == project}

    def _forget(self) -> None:
        """Drop the lists that nobody has read lately; one alone may be as long as it is."""
        places = sum(len(known.runs) for known in self._known.values())
        while len(self._known) > _MOST_LISTS or (places > _MOST_PLACES and len(self._known) > 1):
            places -= len(self._known.popitem(last=False)[1].runs)
