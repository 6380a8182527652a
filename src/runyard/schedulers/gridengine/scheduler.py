"""Grid Engine as a scheduler: each method is a function of this package."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from runyard.schedulers.gridengine import cell, queue, sending
from runyard.schedulers.gridengine import header as headers
from runyard.schedulers.gridengine.commands import Answer
from runyard.schedulers.gridengine.script_words import WORDS
from runyard.schedulers.gridengine.states import read_reason
from runyard.schedulers.jobs import Batch, Header, JobState, Reason, Record, Reply
from runyard.schedulers.partitions import Partition
from runyard.schedulers.protocol import PATIENCE, Notice, Scheduler, Sleep

if TYPE_CHECKING:
    from runyard.schedulers.header_request import HeaderRequest, ScriptPlace


class GridEngine(Scheduler):
    """Jobs of the cell that these variables lead to."""

    name = "gridengine"
    title = "Grid Engine"
    has_queue = True
    words = WORDS
    by_hand: ClassVar[Mapping[str, str]] = {
        "cancel": "`qdel {job}`",
        "log": "`qstat -j {job}` names its stdout_path_list while Grid Engine knows it",
    }

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ

    def is_here(self) -> bool:
        return self.is_installed() and self.cluster_name() is not None

    def demand(self) -> None:
        if shutil.which("qsub", path=self._environ.get("PATH")) is None:
            raise Answer.missing("qsub")

    def cluster_name(self) -> str | None:
        return cell.cluster_name(self._environ)

    def header(self, wanted: HeaderRequest) -> Header:
        # Signals before the end (`-notify`) go to every process of a job, and end those that do
        # not expect them: an agent knows the end by itself.
        return headers.header(wanted)

    def header_lines(self, header: Header, place: ScriptPlace) -> list[str]:
        return headers.header_lines(header, place)

    def describe(self, header: Header) -> str:
        return " ".join(f"-{name} {value or ''}".strip() for name, value in header.options[1:])

    def renumber(self, text: str, tasks: int) -> str:
        return headers.renumber(text, tasks)

    def command(self, batch: Batch) -> list[str]:
        return sending.command(batch)

    def hold(self, ids: Iterable[str]) -> None:
        queue.hold(ids, self._environ)

    def release(self, ids: Iterable[str]) -> None:
        queue.release(ids, self._environ)

    def read_reason(self, word: str | None) -> Reason | None:
        return read_reason(word)

    def submit(
        self, batch: Batch, *, notice: Notice | None = None, sleep: Sleep = time.sleep
    ) -> Reply:
        return sending.send(batch, self._environ, notice=notice, sleep=sleep)

    def try_out(self, batch: Batch) -> Reply:
        return sending.try_out(batch, self._environ)

    def poll(
        self, ids: Iterable[str], *, patience: float = PATIENCE, seconds: float = PATIENCE
    ) -> dict[str, JobState]:
        return queue.poll(ids, self._environ, patience=patience, seconds=seconds)

    def cancel(self, ids: Iterable[str], *, only_waiting: bool = False) -> None:
        queue.cancel(ids, self._environ, only_waiting=only_waiting)

    def records(self, ids: Iterable[str], *, seconds: float = 30.0) -> dict[str, list[Record]]:
        from runyard.schedulers.gridengine.accounting import records

        return records(ids, self._environ, seconds=seconds)

    def partitions(self) -> list[Partition]:
        from runyard.schedulers.gridengine.partitions import list_queues

        return list_queues(self._environ)

    def array_size(self) -> int | None:
        from runyard.schedulers.gridengine.partitions import array_size

        return array_size(self._environ)
