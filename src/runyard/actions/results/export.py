"""Runs as a table: every row they logged, or one row a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from runyard.actions.naming import find_run
from runyard.client.api import Api
from runyard.errors import NotFoundError, UsageError
from runyard.report.export import FORMATS, select_rows, write_table
from runyard.shapes.runs import Run


@dataclass(frozen=True)
class ExportRequest:
    """`runs`: in the user's words; none: all, or those of `project`. `format`: by the file's name,
    or CSV."""

    runs: tuple[str, ...] = ()
    project: str | None = None
    what: str = "history"
    metrics: tuple[str, ...] = ()
    archived: bool = False
    output: Path | None = None
    format: str | None = None


@dataclass(frozen=True)
class Exported:
    """How many rows of how many runs were written."""

    rows: int
    runs: int


def export(connect: Callable[[], Api], request: ExportRequest, stream: TextIO) -> Exported:
    """Write them to the file, or without one to the stream."""
    form = request.format or _form_of(request.output)
    api = connect()
    chosen = _choose(api, request.runs, request.project)
    rows = select_rows(api, chosen, request.what, list(request.metrics), archived=request.archived)
    return Exported(write_table(rows, request.output or stream, form), len(chosen))


def _choose(api: Api, words: Sequence[str], project: str | None) -> list[Run]:
    if words:
        return [find_run(api, word) for word in words]
    runs = api.runs(project=project)
    if not runs:
        where = f" in project {project}" if project else ""
        raise NotFoundError(f"there are no runs{where}", mend="`runyard runs` lists them")
    return runs


def _form_of(path: Path | None) -> str:
    if path is None:
        return "csv"
    form = {"json": "jsonl", "ndjson": "jsonl"}.get(path.suffix[1:], path.suffix[1:])
    if form not in FORMATS:
        raise UsageError(
            f"{path.name} does not say which format it is",
            mend=f"end its name in .csv, .jsonl or .parquet, or give --format {'|'.join(FORMATS)}",
        )
    return form
