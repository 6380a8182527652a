"""How commands print: tables for people, JSON for programs, times in words."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runyard.actions.events import Event, Notice
from runyard.cli.streams import unfiltered
from runyard.printable import json_escaped
from runyard.reading.units import ago as ago
from runyard.reading.units import duration as duration
from runyard.reading.units import number as number
from runyard.reading.units import size as size

if TYPE_CHECKING:
    from rich.console import Console

STATE_COLOURS = {
    "running": "cyan",
    "finished": "green",
    "failed": "red",
    "crashed": "red",
    "killed": "yellow",
    "preempting": "yellow",
    "preempted": "yellow",
    "pending": "dim",
}


# By title: a key of a record, or a function of it.
Columns = Mapping[str, str | Callable[[Any], Any]]
_GAP, _LONGEST_CELL, _NARROWEST_CELL, _SHORTEST_REST = 2, 28, 8, 10
_ROOM, _NARROWEST_NAME = 28, 11  # For the last column, and for the one that gives way to it.


def print_json(content: Any) -> None:
    print(
        json_escaped(json.dumps(content, indent=2, ensure_ascii=not _speaks_unicode(), default=str))
    )


def print_answer(content: Any, text: str, *, as_json: bool) -> None:
    """For a program or for a person."""
    if as_json:
        print_json(content)
    else:
        print(text)


def say(text: str) -> None:
    """A word of runyard's own, beside what is asked for: never on stdout."""
    try:
        print(f"runyard: {text}", file=sys.stderr, flush=True)
    except OSError:
        # The terminal is gone, or nobody reads: what there is to do is done all the same.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def show(event: Event) -> None:
    """What an action tells while it works; a command that knows more kinds shows those itself."""
    if isinstance(event, Notice):
        say(event.text)


def console() -> Console:
    """For tables and colours. Into a pipe or a file nothing is cut to a width."""
    from runyard.cli.tables import PrintableConsole

    width = None if sys.stdout.isatty() else 10_000
    return PrintableConsole(
        file=unfiltered(sys.stdout), width=width, highlight=False, emoji=False, markup=False
    )


def print_table(
    headers: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    width: int | None = None,
    gives_way: str | None = None,
) -> None:
    """A table without lines around it. The last column takes what is left, or goes; a cell of it
    can be a function of that number of characters. If the table is too wide even without the last
    column, the column that `gives_way` is cut until both have room."""
    from rich.table import Table

    rows = [list(row) for row in rows]
    out = console()
    widths = [
        min(
            sys.maxsize if header == gives_way else _LONGEST_CELL,
            max(len(str(row[place])) for row in [headers, *rows]),
        )
        for place, header in enumerate(headers[:-1])
    ]

    def room() -> int:
        return (width or out.width) - sum(widths) - _GAP * len(widths)

    if gives_way is not None and room() < -_GAP:
        place = list(headers).index(gives_way)
        needed = max((len(str(_last_cell(row, sys.maxsize))) for row in rows), default=0)
        cut = widths[place] - max(0, min(_ROOM, needed) - room())
        widths[place] = max(min(widths[place], _NARROWEST_NAME), cut)
    # In a narrow terminal the longest texts are cut, so that the other columns stay.
    while room() < -_GAP and max(widths) > _NARROWEST_CELL:
        widths[widths.index(max(widths))] -= 1
    left = room()
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, _GAP, 0, 0))
    for header, wide in zip(headers, widths, strict=False):
        table.add_column(header, no_wrap=True, overflow="ellipsis", min_width=wide, max_width=wide)
    if left >= _SHORTEST_REST:
        table.add_column(headers[-1], no_wrap=True, overflow="ellipsis", max_width=left)
    for row in rows:
        shown = [*row[:-1], _last_cell(row, left)]
        table.add_row(*shown[: len(table.columns)])
    out.print(table)


def _last_cell(row: Sequence[Any], width: int) -> Any:
    return row[-1](width) if callable(row[-1]) else row[-1]


def print_records(columns: Columns, records: Iterable[Any], **shape: Any) -> None:
    """A table with a row for each record; `shape` as of `print_table`."""
    print_table(
        tuple(columns),
        (
            [record[cell] if isinstance(cell, str) else cell(record) for cell in columns.values()]
            for record in records
        ),
        **shape,
    )


def print_list(columns: Columns, records: Sequence[Any], empty: str, *, as_json: bool) -> None:
    """Records for a program, or as a table for a person, who is told where there are none."""
    if as_json:
        print_json(records)
    elif records:
        print_records(columns, records)
    else:
        say(empty)


def state_text(state: str) -> Any:
    from rich.text import Text

    return Text(state, style=STATE_COLOURS.get(state, ""))


def _speaks_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
