"""The store as coroutines use it: reads, changes, and transfers that take many changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from sqlite3 import Connection
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from runyard.server.store.database import Database
from runyard.server.store.transfers import Changed, Transfer, carry_out

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
        return await asyncio.wrap_future(
            self._database.read(lambda db: question(db, *args, **kwargs))
        )

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
