"""Runs as tables: every logged row, or one row a run; as CSV, JSON lines, Parquet or DataFrame."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.errors import RunyardError, UsageError
from runyard.home import locate, written_aside
from runyard.report.sides import flatten
from runyard.shapes.runs import Run

if TYPE_CHECKING:
    import pandas

Row = dict[str, Any]

FORMATS = ("csv", "jsonl", "parquet")
WHAT = ("history", "system", "summary")
_RUN_COLUMNS = ("run", "name", "project")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+|inf|nan|infinity)(e[+-]?\d+)?", re.I | re.A)


def select_rows(
    api: Api,
    runs: Sequence[Run],
    what: str = "history",
    metrics: Sequence[str] = (),
    *,
    archived: bool = False,
) -> Iterator[Row]:
    """The rows of a table: of each run what it logged, or its config and summary in one.

    `archived` gives what was overwritten or rewound instead, with the number of the archive.
    """
    for run in runs:
        about = {"run": run["id"], "name": run["name"], "project": run["project"]}
        if not archived:
            yield from _rows_of(api, run, about, what, metrics)
            continue
        for archive in api.archives(run):
            known = {
                **about,
                "archive": archive["number"],
                "reason": archive["reason"],
                "archived_at": archive["made_at"],
            }
            if what == "summary":
                values = _settings_and_results(archive["config"], archive["summary"], metrics)
                yield {**known, **values}
            else:
                yield from _rows_of(api, run, known, what, metrics, archive["number"])


def _rows_of(
    api: Api, run: Run, about: Row, what: str, metrics: Sequence[str], archive: int = 0
) -> Iterator[Row]:
    if what == "summary":
        yield {**about, **_summary_row(run, metrics)}
        return
    wanted = [*dict.fromkeys([*metrics, "_step", "_timestamp"])] if metrics else []
    for row in api.rows(run, stream=what, metrics=wanted, archive=archive):
        pairs = sorted(flatten(row), key=lambda pair: _place(pair[0], metrics))
        values = {key: value for key, value in pairs if key != "_row"}
        if not metrics or any(metric in values for metric in metrics):
            yield {**about, **values}


def _place(key: str, metrics: Sequence[str]) -> tuple[int, int, str]:
    """Clients send a row's values in any order: the step first, then metrics, then their clocks."""
    if key.startswith("_"):
        return (0 if key == "_step" else 2, 0, key)
    return (1, metrics.index(key) if key in metrics else len(metrics), key)


def write_table(rows: Iterable[Row], target: Path | IO[str], form: str) -> int:
    """Write a table to a file, or text to a stream. Returns how many rows it has."""
    if form == "parquet":
        if not isinstance(target, Path):
            raise UsageError("Parquet goes into a file", mend="name it with -o runs.parquet")
        return _write_parquet(rows, target)
    writer: Callable[[Iterable[Row], IO[str]], int] = {"csv": _write_csv, "jsonl": _write_jsonl}[
        form
    ]
    if not isinstance(target, Path):
        return writer(rows, target)
    # Whole or not at all: a half-written table looks like a whole one.
    _check_folder(target)
    with (
        written_aside(target) as file,
        io.TextIOWrapper(file, encoding="utf-8", newline="") as text,
    ):
        return writer(rows, text)


def dataframe(
    *runs: str,
    project: str | None = None,
    what: str = "history",
    metrics: Sequence[str] = (),
    archived: bool = False,
) -> pandas.DataFrame:
    """Runs as a pandas DataFrame: `runyard.dataframe(project="spirals", metrics=["loss"])`.

    `runs` are ids or names; without any, all runs (of the project). `what` is history, system
    or summary (one row a run); `archived` gives what was overwritten or rewound. Starts the server
    if need be.
    """
    try:
        import pandas
    except ImportError as error:
        raise RunyardError(
            "a DataFrame needs pandas", said=error, mend="pip install 'runyard[export]'"
        ) from error
    api = ensure_server(locate()).api
    chosen = [api.run(words) for words in runs] if runs else api.runs(project=project)
    return pandas.DataFrame.from_records(
        list(select_rows(api, chosen, what, metrics, archived=archived))
    )


def _settings_and_results(config: Row, summary: Row, metrics: Sequence[str]) -> Row:
    return {
        **{f"config.{key}": value for key, value in flatten(config)},
        **{
            key: value
            for key, value in flatten(summary)
            if not key.startswith("_") and (not metrics or key in metrics)
        },
    }


def _summary_row(run: Run, metrics: Sequence[str]) -> Row:
    took = run["ended_at"] - run["started_at"] if run["ended_at"] and run["started_at"] else None
    return {
        "state": run["state"],
        "exit_code": run["exit_code"],
        "created_at": run["created_at"],
        "seconds": took,
        **_settings_and_results(run["config"], run["summary"], metrics),
    }


def _write_csv(rows: Iterable[Row], file: IO[str]) -> int:
    """Runs may have logged different metrics: the columns are known when all rows are."""
    table = list(rows)
    columns = list(dict.fromkeys(chain(_RUN_COLUMNS, *table)))
    writer = csv.writer(_Lines(file))
    writer.writerow(map(csv_cell, columns))
    for row in table:
        writer.writerow([csv_cell(row.get(key)) for key in columns])
    return len(table)


class _Lines:
    """Python before 3.13 quotes a carriage return in a cell only where it ends lines, too."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, line: str) -> None:
        self._file.write(line.removesuffix("\r\n") + "\n")


def csv_cell(value: Any) -> Any:
    """A value as a cell of CSV, by the same rule as in the page (dashboard/app/src/csv.ts).

    A spreadsheet runs a cell that begins like a formula: such text gets a ' before it. Numbers
    stay as they are.
    """
    cell = _cell(value)
    if isinstance(cell, str) and cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


def _write_jsonl(rows: Iterable[Row], file: IO[str]) -> int:
    count = 0
    for row in rows:
        file.write(json.dumps(row) + "\n")
        count += 1
    return count


def _write_parquet(rows: Iterable[Row], path: Path) -> int:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise RunyardError(
            "Parquet needs pyarrow", said=error, mend="pip install 'runyard[export]'"
        ) from error
    table = list(rows)
    columns = list(dict.fromkeys(chain(_RUN_COLUMNS, *table)))
    arrays = {name: _one_type([row.get(name) for row in table]) for name in columns}
    _check_folder(path)
    with written_aside(path) as file:
        pyarrow.parquet.write_table(pyarrow.table(arrays), file)
    return len(table)


def _one_type(values: list[Any]) -> list[Any]:
    """A Parquet column has one type: mixed numbers become floats, anything else text."""
    types = {type(value) for value in values if value is not None}
    if types <= {int, float} and len(types) > 1:
        return [None if value is None else float(value) for value in values]
    if len(types) > 1 or types & {list, dict}:
        return [None if value is None else _cell(value) for value in values]
    return values


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value


def _check_folder(target: Path) -> None:
    if not target.parent.is_dir():
        raise RunyardError(
            f"there is no folder {target.parent} to write {target.name} into",
            mend=f"mkdir -p {shlex.quote(str(target.parent))}",
        )
