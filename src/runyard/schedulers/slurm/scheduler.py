"""Slurm as a scheduler: each method is a function of this package."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from runyard.schedulers.jobs import Batch, Header, JobState, Reason, Record, Reply, RunningTask
from runyard.schedulers.partitions import Partition
from runyard.schedulers.protocol import PATIENCE, Notice, Scheduler, Sleep
from runyard.schedulers.slurm import allocations, queue, sending
from runyard.schedulers.slurm import header as headers
from runyard.schedulers.slurm.commands import Answer, find_slurm
from runyard.schedulers.slurm.limits import ask_array_size, is_limit, refusal
from runyard.schedulers.slurm.name import cluster_name
from runyard.schedulers.slurm.script_words import WORDS
from runyard.schedulers.slurm.settings import LOCAL_FOLDER
from runyard.schedulers.slurm.variables import clean_environment, with_shell_options

if TYPE_CHECKING:
    from runyard.clusters.asking import Ask
    from runyard.config.request import Request
    from runyard.schedulers.doctor import Doctor
    from runyard.schedulers.header_request import HeaderRequest, ScriptPlace


class Slurm(Scheduler):
    """Jobs of the cluster that these variables lead to."""

    name = "slurm"
    title = "Slurm"
    has_queue = True
    words = WORDS
    local_folder = LOCAL_FOLDER
    by_hand: ClassVar[Mapping[str, str]] = {
        "cancel": "`scancel {job}`",
        "script": "`scontrol write batch_script {job} -` while Slurm knows it",
        "log": "`scontrol show job {job}` names its StdOut while Slurm knows it",
    }

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ

    def is_here(self) -> bool:
        return self.is_installed() and self.cluster_name() is not None

    def demand(self) -> None:
        find_slurm(self._environ)

    def cluster_name(self) -> str | None:
        return cluster_name(self._environ)

    def header(self, wanted: HeaderRequest) -> Header:
        return headers.header(wanted)

    def header_lines(self, header: Header, place: ScriptPlace) -> list[str]:
        return headers.header_lines(header, place)

    def describe(self, header: Header) -> str:
        words = headers.option_words(header)
        return " ".join(word for word in words if not word.startswith("--job-name="))

    def renumber(self, text: str, tasks: int) -> str:
        return headers.renumber(text, tasks)

    def submit(
        self, batch: Batch, *, notice: Notice | None = None, sleep: Sleep = time.sleep
    ) -> Reply:
        answer = sending.send(
            batch.text,
            batch.key,
            options=_options(batch),
            environ=self._inherited(batch),
            may_be_there=batch.may_be_there,
            notice=notice,
            sleep=sleep,
        )
        return _reply(answer, batch)

    def try_out(self, batch: Batch) -> Reply:
        answer = sending.try_out(batch.text, batch.key, _options(batch), self._inherited(batch))
        return _reply(answer, batch)

    def poll(
        self, ids: Iterable[str], *, patience: float = PATIENCE, seconds: float = PATIENCE
    ) -> dict[str, JobState]:
        return queue.poll(ids, self._environ, patience=patience, seconds=seconds)

    def cancel(self, ids: Iterable[str], *, only_waiting: bool = False) -> None:
        queue.cancel(ids, only_waiting=only_waiting, environ=self._environ)

    def records(self, ids: Iterable[str], *, seconds: float = 30.0) -> dict[str, list[Record]]:
        # Seldom needed, and felt at every start.
        from runyard.schedulers.slurm import accounting

        return accounting.records(ids, self._environ, seconds=seconds)

    def partitions(self) -> list[Partition]:
        from runyard.schedulers.slurm.partitions import list_partitions

        return list_partitions(self._environ)

    def array_size(self) -> int | None:
        return ask_array_size(self._environ)

    def command(self, batch: Batch) -> list[str]:
        return sending.command(batch.text, batch.key, _options(batch))

    def hold(self, ids: Iterable[str]) -> None:
        queue.change("hold", ids, self._environ)

    def release(self, ids: Iterable[str]) -> None:
        queue.change("release", ids, self._environ)

    def read_reason(self, word: str | None) -> Reason | None:
        from runyard.schedulers.slurm.reasons import read_reason

        return read_reason(word)

    def own_records(self, since: float, *, seconds: float = 30.0) -> list[Record]:
        from runyard.schedulers.slurm import accounting

        return accounting.own_records(since, self._environ, seconds=seconds)

    def running_tasks(self, only: Iterable[str] | None = None) -> list[RunningTask]:
        from runyard.schedulers.slurm.live_usage import running_tasks

        return running_tasks(self._environ, only=only)

    def fair_shares(self) -> dict[str, float]:
        from runyard.schedulers.slurm import accounting

        return accounting.fair_shares(self._environ)

    def nodes_of(self, partition: str | None) -> tuple[list[str], list[str]]:
        from runyard.schedulers.slurm.partitions import nodes_of

        return nodes_of(partition, self._environ)

    def with_shell_options(self, request: Request) -> Request:
        return with_shell_options(request, self._environ)

    def mind_maintenance(self, request: Request) -> tuple[Request, tuple[str, ...]]:
        from runyard.schedulers.slurm.maintenance import mind_maintenance

        return mind_maintenance(request, self._environ)

    def doctor(self, ask: Ask | None = None, user: str | None = None) -> Doctor:
        from runyard.schedulers.slurm.doctor.doctor import SlurmDoctor

        return SlurmDoctor(self._environ, ask, user)

    def allocation_words(self, header: Header) -> list[str]:
        return allocations.allocation_words(header)

    def allocate(self, header: Header) -> str:
        return allocations.allocate(header, self._environ)

    def entry_words(
        self, job: str, words: Sequence[str], cpus: int | None = None, *, on_terminal: bool = True
    ) -> list[str]:
        return allocations.entry_words(job, words, cpus, on_terminal=on_terminal)

    def entry_number(self, job: str, task: str | None) -> str:
        return allocations.raw_number(job, task, self._environ)

    def _inherited(self, batch: Batch) -> dict[str, str]:
        written = re.findall(r"^#SBATCH --([\w-]+)", batch.text, flags=re.MULTILINE)
        return clean_environment(self._environ, written)


def _options(batch: Batch) -> list[str]:
    # However the one before ends: whether there is work left is found out in the job.
    after = [] if batch.after is None else [f"--dependency=afterany:{batch.after}"]
    if batch.after is not None and batch.minutes is not None:
        after = [f"--dependency=after:{batch.after}+{batch.minutes}"]
    has_line = batch.folder is None or WORDS.is_plain(batch.folder)
    folder = [] if has_line else [f"--chdir={batch.folder}"]
    return [*after, *folder, *([] if batch.node is None else [f"--nodelist={batch.node}"])]


def _reply(answer: Answer, batch: Batch) -> Reply:
    if answer.is_good:
        return Reply("taken", answer.output, answer.words)
    error = refusal(answer, batch.name)
    if is_limit(answer.complaint):
        return Reply("full", "", answer.words, error)
    if not answer.is_busy:
        return Reply("refused", "", answer.words, error)
    look = f"squeue --me --format='%A %k' | grep {sending.mark_of(batch.key)}"
    search = (
        f"`{look}` shows it when Slurm is back: cancel it with scancel, then type the same once "
        "more"
    )
    return Reply("unknown", "", answer.words, error, search)
