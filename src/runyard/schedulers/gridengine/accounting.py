"""Jobs that have ended: Grid Engine's accounting file, which `qacct` reads too (accounting(5)).

`qacct` can be asked for one job at a time and reads the whole file for each. Here the file is read
once for many jobs, from its end, where the newest records are.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from runyard.reading.units import read_seconds, read_whole
from runyard.schedulers.errors import NoAccounting
from runyard.schedulers.gridengine.cell import common_folder
from runyard.schedulers.gridengine.commands import ask
from runyard.schedulers.gridengine.states import ended_state, is_rescheduled
from runyard.schedulers.jobs import Record

_BLOCK = 1 << 20
_USUAL_FLUSH = "00:00:15"
# Older records are no longer looked for: some 300,000 jobs.
_MOST_BYTES = 128 << 20
_FIELDS = (
    "queue", "host", "group", "owner", "name", "job", "account", "priority", "submitted", "start",
    "end", "failed", "exit_status", "wallclock",
)  # fmt: skip
_LATER_FIELDS = {
    31: "project", 34: "slots", 35: "task", 36: "cpu", 39: "category", 41: "pe_task", 42: "peak",
}  # fmt: skip
_LAST = max(_LATER_FIELDS)
_UNITS = {"": 1, "k": 1000, "K": 1 << 10, "m": 10**6, "M": 1 << 20, "g": 10**9, "G": 1 << 30}


def records(
    ids: Iterable[str], environ: Mapping[str, str], *, seconds: float = 30.0
) -> dict[str, list[Record]]:
    """What accounting knows of these jobs, by job; those that it lacks are left out."""
    wanted, end = set(ids), time.monotonic() + seconds
    by_task: dict[str, Record] = {}
    for fields in _newest(environ, lambda fields: fields["job"] in wanted, end):
        # A job that was run twice has two records, and numbers begin again after 9,999,999: the
        # last one counts.
        if fields["pe_task"] in ("", "NONE") and not is_rescheduled(_number(fields["failed"])):
            record = _record(fields)
            by_task.setdefault(record.which, record)
    jobs: dict[str, list[Record]] = {}
    for record in sorted(by_task.values(), key=lambda record: _task_number(record.which)):
        jobs.setdefault(record.job_id, []).append(record)
    return jobs


def flush_seconds(environ: Mapping[str, str]) -> float:
    """How long after a job's end its record may be written."""
    answer = ask(["qconf", "-sconf"], environ=environ, patience=0.0)
    # Long values go on in the next line.
    text = answer.output.replace("\\\n", " ")
    params = re.search(r"^reporting_params\s+(.*)", text, re.MULTILINE)
    known = dict(re.findall(r"(\w+)=(\S+)", params[1] if params else ""))
    flush = known.get("accounting_flush_time") or known.get("flush_time") or _USUAL_FLUSH
    # 00:00:00 is no length of time: records are written at once.
    return read_seconds(flush) or 0.0


def find_marked(mark: str, environ: Mapping[str, str]) -> list[str]:
    """The jobs whose account or name carries a mark."""
    rows = _newest(environ, lambda row: mark in row["account"] or row["name"].endswith(mark))
    return list(dict.fromkeys(fields["job"] for fields in rows))


def _newest(
    environ: Mapping[str, str],
    is_wanted: Callable[[Mapping[str, str]], bool],
    end: float = math.inf,
) -> Iterator[dict[str, str]]:
    path = common_folder(environ) / "accounting"
    try:
        for line in _lines_from_the_end(path, end):
            parts = line.split(":")
            if line.startswith("#") or len(parts) <= _LAST:
                continue
            fields = dict(zip(_FIELDS, parts, strict=False))
            fields |= {name: parts[place] for place, name in _LATER_FIELDS.items()}
            if is_wanted(fields):
                yield fields
    except OSError as error:
        raise NoAccounting(f"{path}: {error.strerror}") from error


def _lines_from_the_end(path: Path, end: float) -> Iterator[str]:
    with path.open("rb") as file:
        place = file.seek(0, 2)
        stop = max(0, place - _MOST_BYTES)
        rest = b""
        while place > stop and time.monotonic() < end:
            size = min(_BLOCK, place - stop)
            place -= size
            file.seek(place)
            first, *lines = (file.read(size) + rest).split(b"\n")
            for line in reversed(lines):
                yield line.decode(errors="replace")
            rest = first
        yield rest.decode(errors="replace")


def _record(fields: Mapping[str, str]) -> Record:
    requests = dict(re.findall(r"([\w.]+)=([^,\s]+)", _requested(fields["category"])))
    limit = read_seconds(requests.get("h_rt", ""))
    cpus, task = _number(fields["slots"]) or 1, _number(fields["task"])
    start, end = _moment(fields["start"]), _moment(fields["end"])
    seconds = float(_number(fields["wallclock"])) or ((end or 0.0) - (start or end or 0.0))
    per_slot = _size(requests.get("h_vmem") or requests.get("mem_free"))
    hard_limit, peak = _size(requests.get("h_vmem")), _size(fields["peak"])
    return Record(
        which=f"{fields['job']}_{task}" if task else fields["job"],
        name=fields["name"],
        account="" if fields["project"] == "NONE" else fields["project"],
        state=ended_state(
            _number(fields["failed"]),
            _number(fields["exit_status"]),
            over_time=limit is not None and seconds >= limit,
            over_memory=bool(hard_limit and peak and peak >= hard_limit * cpus),
        ),
        exit_code=f"{fields['exit_status']}:0",
        partition=fields["queue"],
        nodes=fields["host"] if start is not None else None,
        submitted=_moment(fields["submitted"]),
        start=start,
        end=end,
        seconds=seconds,
        limit=limit,
        cpus=cpus,
        cpu_seconds=float(fields["cpu"]) if re.fullmatch(r"[\d.]+", fields["cpu"]) else 0.0,
        memory_asked=None if per_slot is None else per_slot * cpus,
        memory_peak=peak,
        gpus=_number(requests.get("gpu", "0")),
    )


def _requested(category: str) -> str:
    """The hard resource requests of a job's category: h_rt=60,h_vmem=1G."""
    match = re.search(r"(?:^|(?<!-soft) )-l (\S+)", category)
    return match[1] if match else ""


def _number(text: str) -> int:
    return read_whole(text.partition(".")[0]) or 0


def _moment(text: str) -> float | None:
    """Seconds since 1970; 0 of a job that never started."""
    return float(_number(text)) or None


def _size(text: str | None) -> int | None:
    match = re.fullmatch(r"(\d{1,20}(?:\.\d+)?)([kKmMgG]?)", text or "")
    return int(float(match[1]) * _UNITS[match[2]]) if match else None


def _task_number(which: str) -> int:
    return _number(which.partition("_")[2])
