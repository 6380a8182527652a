"""Grid Engine as a scheduler: each method is a function of this package."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from runyard.schedulers.gridengine import cell, queue, sending
from runyard.schedulers.gridengine import header as headers
from runyard.schedulers.gridengine.commands import missing
from runyard.schedulers.gridengine.script_words import WORDS
from runyard.schedulers.gridengine.states import read_reason
from runyard.schedulers.jobs import Batch, Header, JobState, Reason, Record, Reply
from runyard.schedulers.partitions import Partition
from runyard.schedulers.protocol import ANSWER_SECONDS, PATIENCE_SECONDS, Notice, Scheduler

if TYPE_CHECKING:
    from pathlib import Path

    from runyard.clusters.profile import Profile
    from runyard.config.request import Request
    from runyard.schedulers.resources import Ruled
    from runyard.schedulers.script_words import ScriptWords


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
        return self.is_installed() and self.cluster_name() is not None

    def demand(self) -> None:
        if shutil.which("qsub", path=self._environ.get("PATH")) is None:
            raise missing("qsub")

    def cluster_name(self) -> str | None:
        return cell.cluster_name(self._environ)

    @property
    def words(self) -> ScriptWords:
        return WORDS

    def header(
        self,
        name: str,
        request: Request,
        profile: Profile,
        ruled: Ruled,
        *,
        form: str,
        agents: int,
        grace: float,
        signal: str = "USR2",
        requeue: bool = False,
        more: Sequence[str] = (),
    ) -> Header:
        # Signals before the end (`-notify`) go to every process of a job, and end those that do
        # not expect them: an agent knows the end by itself.
        return headers.header(
            name, request, ruled, form=form, requeue=requeue, site=profile.gridengine,
            more=(*profile.submission.always, *more),
        )  # fmt: skip

    def header_lines(
        self,
        header: Header,
        *,
        tasks: int | None = None,
        at_once: int | None = None,
        log: str | None,
        folder: Path | None = None,
    ) -> list[str]:
        return headers.header_lines(header, tasks=tasks, at_once=at_once, log=log, folder=folder)

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
