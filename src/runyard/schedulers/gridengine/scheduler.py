"""Grid Engine as a scheduler: each method is a function of this package."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

from runyard.schedulers.gridengine import cell, queue, sending
from runyard.schedulers.gridengine.commands import missing
from runyard.schedulers.jobs import Batch, JobState, Record, Reply
from runyard.schedulers.partitions import Partition
from runyard.schedulers.protocol import ANSWER_SECONDS, PATIENCE_SECONDS, Notice, Scheduler


class GridEngine(Scheduler):
    """Jobs of the cell that these variables lead to."""

    name = "gridengine"
    title = "Grid Engine"
    has_queue = True
    by_hand: ClassVar[Mapping[str, str]] = {
        "cancel": "`qdel {job}`",
        "log": "`qstat -j {job}` names its stdout_path_list while Grid Engine knows it",
    }

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ

    def is_here(self) -> bool:
        path = self._environ.get("PATH")
        return shutil.which("qsub", path=path) is not None and self.cluster_name() is not None

    def demand(self) -> None:
        if shutil.which("qsub", path=self._environ.get("PATH")) is None:
            raise missing("qsub")

    def cluster_name(self) -> str | None:
        return cell.cluster_name(self._environ)

    def submit(
        self,
        batch: Batch,
        *,
        may_be_there: bool = False,
        notice: Notice | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Reply:
        return sending.send(
            batch, self._environ, may_be_there=may_be_there, notice=notice, sleep=sleep
        )

    def try_out(self, batch: Batch) -> Reply:
        return sending.try_out(batch, self._environ)

    def poll(
        self,
        ids: Iterable[str],
        *,
        patience: float = PATIENCE_SECONDS,
        seconds: float = ANSWER_SECONDS,
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
