"""What Slurm's accounting knows of jobs that have ended: `sacct`, read by named fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from runyard.reading.units import read_whole
from runyard.schedulers.slurm.commands import Answer, ask, for_reading
from runyard.schedulers.slurm.queue import read_time
from runyard.schedulers.slurm.states import State, read_state

_FIELDS = (
    "JobID", "State", "ExitCode", "Start", "End", "ElapsedRaw", "TimelimitRaw", "AllocCPUS",
    "TotalCPU", "MaxRSS", "ReqMem", "AllocTRES", "NodeList", "Partition", "JobName", "Submit",
    "Account",
)  # fmt: skip
_AT_A_TIME = 500
# What its database does not know is the largest number there is, in MB: 18446744073709551614M.
_NOTHING_KNOWN = 1 << 63
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}


@dataclass(frozen=True)
class Record:
    """One task of a job, or a job that is no array, as accounting has it."""

    which: str
    """123, or 123_4 in an array; 123_[5-9] are tasks that never started."""
    name: str
    account: str
    state: State
    exit_code: str
    partition: str
    nodes: str | None
    submitted: float | None
    start: float | None
    end: float | None
    seconds: float
    limit: float | None
    """What time was asked for, in seconds."""
    cpus: int
    cpu_seconds: float
    memory_asked: int | None
    """Bytes, of all its nodes."""
    memory_peak: int | None
    """Bytes, of the step that used most."""
    gpus: int

    @property
    def job_id(self) -> str:
        return self.which.partition("_")[0]


class NoAccounting(Exception):
    """The site keeps no accounting, or does not let us read it; Slurm's words."""


def records(
    ids: Iterable[str],
    environ: Mapping[str, str] | None = None,
    *,
    seconds: float = 30.0,
) -> dict[str, list[Record]]:
    """What accounting knows of these jobs, by job; those that it lacks are left out."""
    wanted = list(dict.fromkeys(ids))
    found: dict[str, list[Record]] = {}
    for begin in range(0, len(wanted), _AT_A_TIME):
        named = ",".join(wanted[begin : begin + _AT_A_TIME])
        for record in read_records(_sacct(["--jobs", named], environ, seconds)):
            found.setdefault(record.job_id, []).append(record)
    return found


def own_records(
    since: float, environ: Mapping[str, str] | None = None, *, seconds: float = 30.0
) -> list[Record]:
    """All of one's own jobs since a time, whoever submitted them."""
    import time

    start = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(since))
    return read_records(_sacct(["--starttime", start], environ, seconds))


def read_records(text: str) -> list[Record]:
    """What sacct printed; a step's figures go to its job, and odd lines are left out."""
    found: dict[str, Record] = {}
    for line in text.splitlines():
        parts = line.split("|")
        if len(parts) < len(_FIELDS):
            continue
        told = dict(zip(_FIELDS, parts, strict=False))
        which, _, step = told["JobID"].partition(".")
        if not step:
            found[which] = _record(which, told)
        elif which in found:
            peak, before = read_size(told["MaxRSS"]), found[which].memory_peak
            if peak is not None:
                found[which] = replace(found[which], memory_peak=max(peak, before or 0))
    return list(found.values())


def used(of_job: Sequence[Record]) -> dict[str, float]:
    """What a job's tasks used, against what they had: the ledger's `used`."""
    ran = [one for one in of_job if one.start is not None]
    if not ran:
        return {}
    peaks = [one.memory_peak for one in ran if one.memory_peak is not None]
    asked = [one.memory_asked for one in ran if one.memory_asked is not None]
    limits = [one.limit for one in ran if one.limit is not None]
    told = {
        "tasks": len(ran),
        "seconds": sum(one.seconds for one in ran),
        "longest_seconds": max((one.seconds for one in ran), default=0.0),
        "limit_seconds": max(limits, default=None),
        "cpu_seconds": sum(one.cpu_seconds for one in ran),
        "cpu_seconds_held": sum(one.cpus * one.seconds for one in ran),
        "gpu_seconds_held": sum(one.gpus * one.seconds for one in ran),
        "memory_peak": max(peaks, default=None),
        "memory_asked": max(asked, default=None),
    }
    return {name: value for name, value in told.items() if value is not None}


def read_size(text: str, cpus: int = 1, nodes: int = 1) -> int | None:
    """A size as Slurm writes it: 512M, 4Gn (a node), 2Gc (a CPU), 1536K, 3.5G."""
    found = re.fullmatch(r"(\d{1,20}(?:\.\d+)?)([KMGTP]?)([nc]?)", text.strip())
    if found is None:
        return None
    times = cpus if found[3] == "c" else nodes if found[3] == "n" else 1
    size = int(float(found[1]) * _UNITS[found[2]] * times)
    return size if size < _NOTHING_KNOWN else None


def read_cpu_time(text: str) -> float:
    """1-02:03:04, 02:03:04, 03:04.567."""
    bare = text.strip()
    found = re.fullmatch(r"(?:(\d{1,9})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d{1,9}(?:\.\d+)?)", bare)
    if found is None:
        return 0.0
    days, hours, minutes = (int(part or 0) for part in found.groups()[:3])
    return days * 86400 + hours * 3600 + minutes * 60 + float(found[4])


def _sacct(words: Sequence[str], environ: Mapping[str, str] | None, seconds: float) -> str:
    answer = ask(
        ["sacct", "--parsable2", "--noheader", f"--format={','.join(_FIELDS)}", *words],
        environ=for_reading(environ),
        patience=0.0,
        seconds=seconds,
    )
    if not answer.is_good:
        raise NoAccounting(_why_not(answer))
    return answer.said


def _why_not(answer: Answer) -> str:
    if "disabled" in answer.complained:
        return "the site keeps no accounting (Slurm accounting storage is disabled)"
    return f"sacct does not answer ({answer.words})"


def _record(which: str, told: Mapping[str, str]) -> Record:
    cpus = read_whole(told["AllocCPUS"]) or 0
    nodes = _tres(told["AllocTRES"], "node") or 1
    limit = read_whole(told["TimelimitRaw"])
    return Record(
        which=which,
        name=told["JobName"],
        account=told["Account"],
        state=read_state(told["State"]),
        exit_code=told["ExitCode"],
        partition=told["Partition"],
        nodes=told["NodeList"] if told["NodeList"] not in ("", "None assigned") else None,
        submitted=read_time(told["Submit"]),
        start=read_time(told["Start"]),
        end=read_time(told["End"]),
        seconds=float(read_whole(told["ElapsedRaw"]) or 0),
        limit=None if limit is None else limit * 60.0,
        cpus=cpus,
        cpu_seconds=read_cpu_time(told["TotalCPU"]),
        memory_asked=read_size(told["ReqMem"], cpus, nodes),
        memory_peak=read_size(told["MaxRSS"]),
        gpus=_tres(told["AllocTRES"], "gres/gpu"),
    )


def _tres(text: str, name: str) -> int:
    """A count out of billing=4,cpu=4,gres/gpu=3,gres/gpu:a100=2,gres/gpu:h100=1,mem=8000M,node=1.

    A site may account for typed ones alone: then their sum.
    """
    plain = re.search(rf"(?:^|,){re.escape(name)}=(\d+)", text)
    typed = re.findall(rf"(?:^|,){re.escape(name)}:[^=,]+=(\d+)", text)
    return sum(read_whole(count) or 0 for count in ([plain[1]] if plain else typed))
