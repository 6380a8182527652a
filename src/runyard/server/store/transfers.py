"""Rows that move: what takes longer than the writer may be held, in slices.

A transfer is planned on a reader and carried out by the writer, one short change after the other;
what others write comes in between. After each slice all that is stored can be read, so a server
that dies leaves rows in one place or the other, never in none; whoever asked for the transfer asks
again, and it goes on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from sqlite3 import Connection

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
