"""Times, sizes, resources and fields, as Slurm's commands write them."""

from __future__ import annotations

import re
import time

from runyard.reading.units import read_seconds, read_whole

# What its database does not know is the largest number there is, in MB: 18446744073709551614M.
_NOTHING_KNOWN = 1 << 63
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}


def read_time(text: str) -> float | None:
    """A moment as Slurm writes it, in this machine's time zone: 2026-03-01T09:30:00."""
    try:
        return time.mktime(time.strptime(text.strip(), "%Y-%m-%dT%H:%M:%S"))
    except (ValueError, OverflowError):  # N/A, Unknown, None; or SLURM_TIME_FORMAT is set.
        return None


def read_span(text: str | None) -> float | None:
    """A limit of time, in seconds; None where there is none (UNLIMITED, NONE)."""
    return read_seconds((text or "").strip())


def read_cpu_time(text: str) -> float:
    """1-02:03:04, 02:03:04, 03:04.567."""
    bare = text.strip()
    match = re.fullmatch(r"(?:(\d{1,9})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d{1,9}(?:\.\d+)?)", bare)
    if match is None:
        return 0.0
    days, hours, minutes = (int(part or 0) for part in match.groups()[:3])
    return days * 86400 + hours * 3600 + minutes * 60 + float(match[4])


def clock(seconds: float) -> str:
    """A length of time as Slurm takes it: days-hours:minutes:seconds."""
    whole = max(1, round(seconds))
    days, rest = divmod(whole, 86400)
    return f"{days}-{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


def read_size(text: str, cpus: int = 1, nodes: int = 1) -> int | None:
    """A size as Slurm writes it: 512M, 4Gn (a node), 2Gc (a CPU), 1536K, 3.5G."""
    match = re.fullmatch(r"(\d{1,20}(?:\.\d+)?)([KMGTP]?)([nc]?)", text.strip())
    if match is None:
        return None
    times = cpus if match[3] == "c" else nodes if match[3] == "n" else 1
    size = int(float(match[1]) * _UNITS[match[2]] * times)
    return size if size < _NOTHING_KNOWN else None


def read_fields(line: str) -> dict[str, str]:
    """Of `NAME=value NAME=value`, as scontrol's one-line form has it. A value may hold spaces."""
    fields: dict[str, str] = {}
    name = ""
    for word in line.split():
        key, equals, value = word.partition("=")
        if equals and key.isidentifier():
            name = key
            fields[name] = value
        elif name:
            fields[name] += f" {word}"
    return fields


def read_gres(text: str) -> dict[str, int]:
    """GPUs in Slurm's list of resources: `gpu:a100:4(S:0-1),gpu:a100_1g.5gb:7,nvme:1`."""
    gpus: dict[str, int] = {}
    for resource in re.sub(r"\([^()]*\)", "", text).split(","):
        parts = resource.split(":")
        if parts[0] != "gpu":
            continue
        count = read_whole(parts[-1]) if len(parts) > 1 else 1
        kind = "" if count is not None and len(parts) < 3 else parts[1]
        gpus[kind] = gpus.get(kind, 0) + (1 if count is None else count)
    return gpus
