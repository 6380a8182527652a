"""Slurm as a scheduler: each method is a function of this package."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping

from runyard.schedulers.jobs import Batch, JobState, Record, Reply
from runyard.schedulers.partitions import Partition
from runyard.schedulers.protocol import ANSWER_SECONDS, PATIENCE_SECONDS, Notice
from runyard.schedulers.slurm import queue
from runyard.schedulers.slurm.commands import Answer
from runyard.schedulers.slurm.limits import ask_array_size, is_limit, refusal
from runyard.schedulers.slurm.name import cluster_name
from runyard.schedulers.slurm.sending import send, try_out
from runyard.schedulers.slurm.variables import clean_environment


class Slurm:
    """Jobs of the cluster that these variables lead to."""

    name = "slurm"
    has_queue = True

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ

    def is_here(self) -> bool:
        path = self._environ.get("PATH")
        return shutil.which("sbatch", path=path) is not None and self.cluster_name() is not None

    def cluster_name(self) -> str | None:
        return cluster_name(self._environ)

    def submit(
        self,
        batch: Batch,
        *,
        may_be_there: bool = False,
        notice: Notice | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Reply:
        answer = send(
            batch.text,
            batch.key,
            options=_options(batch),
            environ=self._inherited(batch),
            may_be_there=may_be_there,
            notice=notice,
            sleep=sleep,
        )
        return _reply(answer, batch.name)

    def try_out(self, batch: Batch) -> Reply:
        answer = try_out(batch.text, batch.key, _options(batch), self._inherited(batch))
        return _reply(answer, batch.name)

    def poll(
        self,
        ids: Iterable[str],
        *,
        patience: float = PATIENCE_SECONDS,
        seconds: float = ANSWER_SECONDS,
    ) -> dict[str, JobState]:
        return queue.poll(ids, self._environ, patience=patience, seconds=seconds)

    def cancel(self, ids: Iterable[str], *, only_waiting: bool = False) -> None:
        queue.cancel(ids, only_waiting=only_waiting, environ=self._environ)

    def records(self, ids: Iterable[str], *, seconds: float = 30.0) -> dict[str, list[Record]]:
        # Seldom needed, and felt at every start.
        from runyard.schedulers.slurm.accounting import records

        return records(ids, self._environ, seconds=seconds)

    def partitions(self) -> list[Partition]:
        from runyard.schedulers.slurm.partitions import list_partitions

        return list_partitions(self._environ)

    def array_size(self) -> int | None:
        return ask_array_size(self._environ)

    def _inherited(self, batch: Batch) -> dict[str, str]:
        written = re.findall(r"^#SBATCH --([\w-]+)", batch.text, flags=re.MULTILINE)
        return clean_environment(self._environ, written)


def _options(batch: Batch) -> list[str]:
    # However the one before ends: whether there is work left is found out in the job.
    after = [] if batch.after is None else [f"--dependency=afterany:{batch.after}"]
    return [*after, *batch.options]


def _reply(answer: Answer, name: str) -> Reply:
    if answer.is_good:
        return Reply("taken", answer.said, answer.words)
    error = refusal(answer, name)
    if is_limit(answer.complained):
        return Reply("full", "", answer.words, error)
    return Reply("unknown" if answer.is_busy else "refused", "", answer.words, error)
