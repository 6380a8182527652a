"""The store as coroutines use it: reads, changes, and transfers that take many changes.

A transfer moves rows in slices, where one change would hold the writer for too long. It is planned
on a reader and carried out by the writer, one short change after the other, and others write in
between. After each slice all that is stored can be read, so a server that dies leaves rows in one
place or the other, never in none; whoever asked for the transfer asks again, and it goes on.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from sqlite3 import Connection
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from runyard.server.store.database import Database, TakesLong

Slice = Callable[[Connection], object]


class Changed(Exception):
    """A piece is not there any more as it was planned with: plan again."""


class Transfer(ABC):
    """One at a time for a run: posts may come in between, other transfers may not."""

    @abstractmethod
    def plan(self, db: Connection) -> Slice | None:
        """The next slice; None if all is done. Only reads.

        A slice raises `Changed` where what it was planned with has changed since.
        """

    def restart(self) -> None:
        """Forget what was planned: something has changed."""
        return


class Needed(Exception):
    """A change that cannot be made before a transfer is. Nothing of it was."""

    def __init__(self, run: int, transfer: Transfer) -> None:
        super().__init__()
        self.run = run
        self.transfer = transfer


def carry_out(db: Connection, transfer: Transfer) -> None:
    """Make a whole transfer at once, where nobody waits for the connection."""
    while (part := transfer.plan(db)) is not None:
        try:
            part(db)
        except Changed:
            transfer.restart()


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# A transfer is planned anew so often where others change what it was planned with.
_MOST_PLANS = 10


class Store:
    """One database, for code on the event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # Of runs whose rows are being moved; gone when nobody waits for it.
        self._transferring: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    async def write(
        self,
        change: Callable[Concatenate[Connection, Arguments], Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Make a change, and come back when it is on disk."""
        return await asyncio.wrap_future(
            self._database.write(lambda db: change(db, *args, **kwargs), _name_of(change))
        )

    async def read(
        self,
        question: Callable[Concatenate[Connection, Arguments], Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Ask. What turns out to take long is asked again where no page waits for it."""
        try:
            return await asyncio.wrap_future(
                self._database.read(lambda db: question(db, *args, **kwargs))
            )
        except TakesLong:
            return await self.plan(question, *args, **kwargs)

    async def plan(
        self,
        question: Callable[Concatenate[Connection, Arguments], Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Like `read`, for what takes long: it waits for its likes, and no page waits for it."""
        return await asyncio.wrap_future(
            self._database.plan(lambda db: question(db, *args, **kwargs))
        )

    async def read_apart(
        self,
        question: Callable[Concatenate[Connection, Arguments], Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Like `read`, on a thread and a connection of its own."""
        return await asyncio.to_thread(
            self._database.read_apart, lambda db: question(db, *args, **kwargs)
        )

    async def transfer(self, run: int, transfer: Transfer) -> None:
        """Move rows of a run, in slices; others write in between."""
        async with self._transferring.setdefault(run, asyncio.Lock()):
            failures = 0
            while (part := await self.plan(transfer.plan)) is not None:
                try:
                    await self.write(part)
                except Changed:
                    transfer.restart()
                    failures += 1
                    if failures == _MOST_PLANS:  # Somebody writes without a pause: all at once.
                        await self.write(carry_out, transfer)


def _name_of(change: Callable[..., object]) -> str:
    """Under which the writer's time for such changes is counted: `streams.record`."""
    module = getattr(change, "__module__", "").rpartition(".")[2]
    function = getattr(change, "__qualname__", type(change).__name__)
    return f"{module}.{function.rpartition('.')[2].lstrip('_')}"


log = logging.getLogger(__name__)

# Some milliseconds of the writer's time each; others get their turn in between.
_PAGES_AT_ONCE = 500


class Vacuum:
    """Works when it is told that something was deleted, and once at the start."""

    def __init__(self) -> None:
        # The start counts: a server that was killed may have left some.
        self._wanted = asyncio.Event()
        self._wanted.set()

    def note(self) -> None:
        self._wanted.set()

    async def work(self, store: Store) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                while await store.write(give_back, _PAGES_AT_ONCE):
                    pass
            except Exception:
                log.exception("could not give back the space of deleted runs")


def give_back(db: Connection, pages: int) -> bool:
    """Hand unused pages back to the file system. Says whether there are more."""
    # Each page is one step of the statement: it must be run to its end.
    db.execute(f"PRAGMA incremental_vacuum({int(pages)})").fetchall()
    unused: int = db.execute("PRAGMA freelist_count").fetchone()[0]
    mode: int = db.execute("PRAGMA auto_vacuum").fetchone()[0]
    return unused > 0 and mode == 2
