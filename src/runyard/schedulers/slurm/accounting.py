"""What Slurm's accounting knows of jobs that have ended: `sacct`, read by named fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from runyard.reading.units import read_whole
from runyard.schedulers.errors import NoAccounting, SchedulerError
from runyard.schedulers.jobs import Record
from runyard.schedulers.slurm.commands import Answer, ask, for_reading
from runyard.schedulers.slurm.queue import AT_A_TIME
from runyard.schedulers.slurm.states import read_state
from runyard.schedulers.slurm.values import read_cpu_time, read_size, read_time

_FIELDS = (
    "JobID", "State", "ExitCode", "Start", "End", "ElapsedRaw", "TimelimitRaw", "AllocCPUS",
    "TotalCPU", "MaxRSS", "ReqMem", "AllocTRES", "NodeList", "Partition", "JobName", "Submit",
    "Account",
)  # fmt: skip
_SHARE_SECONDS = 60.0


def records(
    ids: Iterable[str],
    environ: Mapping[str, str] | None = None,
    *,
    seconds: float = 30.0,
) -> dict[str, list[Record]]:
    """What accounting knows of these jobs, by job; those that it lacks are left out."""
    wanted = list(dict.fromkeys(ids))
    records: dict[str, list[Record]] = {}
    for begin in range(0, len(wanted), AT_A_TIME):
        named = ",".join(wanted[begin : begin + AT_A_TIME])
        for record in read_records(_sacct(["--jobs", named], environ, seconds)):
            records.setdefault(record.job_id, []).append(record)
    return records


def own_records(
    since: float, environ: Mapping[str, str] | None = None, *, seconds: float = 30.0
) -> list[Record]:
    """All of one's own jobs since a time, whoever submitted them."""
    import time

    start = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(since))
    return read_records(_sacct(["--starttime", start], environ, seconds))


def read_records(text: str) -> list[Record]:
    """What sacct printed; a step's figures go to its job, and odd lines are left out."""
    records: dict[str, Record] = {}
    for line in text.splitlines():
        parts = line.split("|")
        if len(parts) < len(_FIELDS):
            continue
        fields = dict(zip(_FIELDS, parts, strict=False))
        which, _, step = fields["JobID"].partition(".")
        if not step:
            records[which] = _record(which, fields)
        elif which in records:
            peak, before = read_size(fields["MaxRSS"]), records[which].memory_peak
            if peak is not None:
                records[which] = replace(records[which], memory_peak=max(peak, before or 0))
    return list(records.values())


def _sacct(words: Sequence[str], environ: Mapping[str, str] | None, seconds: float) -> str:
    answer = ask(
        ["sacct", "--parsable2", "--noheader", f"--format={','.join(_FIELDS)}", *words],
        environ=for_reading(environ),
        patience=0.0,
        seconds=seconds,
    )
    if not answer.is_good:
        raise NoAccounting(_why_not(answer))
    return answer.output


def _why_not(answer: Answer) -> str:
    if "disabled" in answer.complaint:
        return "the site keeps no accounting (Slurm accounting storage is disabled)"
    return f"sacct does not answer ({answer.words})"


def _record(which: str, cells: Mapping[str, str]) -> Record:
    cpus = read_whole(cells["AllocCPUS"]) or 0
    nodes = _tres(cells["AllocTRES"], "node") or 1
    limit = read_whole(cells["TimelimitRaw"])
    return Record(
        which=which,
        name=cells["JobName"],
        account=cells["Account"],
        state=read_state(cells["State"]),
        exit_code=cells["ExitCode"],
        partition=cells["Partition"],
        nodes=cells["NodeList"] if cells["NodeList"] not in ("", "None assigned") else None,
        submitted=read_time(cells["Submit"]),
        start=read_time(cells["Start"]),
        end=read_time(cells["End"]),
        seconds=float(read_whole(cells["ElapsedRaw"]) or 0),
        limit=None if limit is None else limit * 60.0,
        cpus=cpus,
        cpu_seconds=read_cpu_time(cells["TotalCPU"]),
        memory_asked=read_size(cells["ReqMem"], cpus, nodes),
        memory_peak=read_size(cells["MaxRSS"]),
        gpus=_tres(cells["AllocTRES"], "gres/gpu"),
    )


def _tres(text: str, name: str) -> int:
    """A count out of billing=4,cpu=4,gres/gpu=3,gres/gpu:a100=2,gres/gpu:h100=1,mem=8000M,node=1.

    A site may account for typed ones alone: then their sum.
    """
    plain = re.search(rf"(?:^|,){re.escape(name)}=(\d+)", text)
    typed = re.findall(rf"(?:^|,){re.escape(name)}:[^=,]+=(\d+)", text)
    return sum(read_whole(count) or 0 for count in ([plain[1]] if plain else typed))


def fair_shares(environ: Mapping[str, str] | None = None) -> dict[str, float]:
    """By account; empty where the site does not reckon with them."""
    words = ["sshare", "-U", "--parsable2", "--noheader", "--format=Account,FairShare"]
    try:
        answer = ask(words, environ=for_reading(environ), patience=0.0, seconds=_SHARE_SECONDS)
    except SchedulerError:
        return {}
    return dict(_shares(answer.output.splitlines()))


def _shares(lines: Iterable[str]) -> Iterable[tuple[str, float]]:
    for line in lines:
        account, _, share = line.strip().partition("|")
        try:
            yield account, float(share)
        except ValueError:
            continue
