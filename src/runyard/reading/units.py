"""Lengths of time, amounts of memory and numbers, as people and Slurm write them."""

from __future__ import annotations

import json
import math
import re
import time
from typing import Any

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
# Slurm's units are powers of 1024, whatever comes after the letter.
_MEBIBYTES = {"m": 1, "g": 1024, "t": 1024**2}

# Seconds: a time up to the first number is rounded up to a multiple of the second.
_TIME_STEPS = ((1800.0, 60.0), (4 * 3600.0, 300.0), (math.inf, 1800.0))
_SHORTEST = 300.0
_SMALL = 2048

TIME_FORMS = "90s, 30m, 2h, 1-12:00:00"
MEMORY_FORMS = "500M, 16G"
# Longer than any useful amount; Python reads no number of 5,000 digits.
_LONGEST = 40
_MOST_DIGITS = 18


def read_whole(text: str | None) -> int | None:
    """A whole number as Slurm writes it; None: not a number, or more than Slurm can count."""
    bare = (text or "").strip()
    return int(bare) if bare.isdecimal() and len(bare) <= _MOST_DIGITS else None


def read_seconds(text: str) -> float | None:
    """A length of time, as 90, 90s, 1.5h, 2h30m, or as Slurm's 1-12:30:00; None: not a time."""
    if len(text) > _LONGEST:
        return None
    match = re.fullmatch(r"(?:(\d+)-)?(\d+):(\d+)(?::(\d+))?", text)
    if match is not None:
        days, first, second, third = (int(part or 0) for part in match.groups())
        clock = match[4] is not None or match[1] is not None
        seconds: float = first * 3600 + second * 60 + third if clock else first * 60 + second
        return days * 86400.0 + seconds or None
    if re.fullmatch(r"\d+-\d+", text):  # Slurm's days-hours
        days, hours = (int(part) for part in text.split("-"))
        return days * 86400.0 + hours * 3600 or None
    parts = re.findall(r"(\d+(?:\.\d*)?)([smhd]?)", text)
    is_whole = bool(parts) and "".join(number + unit for number, unit in parts) == text
    seconds = sum(float(number) * _SECONDS[unit or "s"] for number, unit in parts)
    return seconds if is_whole and seconds > 0 else None


def read_mebibytes(text: str) -> int | None:
    """An amount of memory with its unit, in MiB; 0 needs no unit; None: not an amount."""
    if len(text) > _LONGEST:
        return None
    if text.strip() == "0":
        return 0
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([mgt])(?:i?b)?", text.strip().lower())
    if match is None:
        return None
    return round(float(match[1]) * _MEBIBYTES[match[2]])


def slurm_time(seconds: float) -> str:
    """A length of time for Slurm: days-hours:minutes:seconds, rounded up."""
    whole = -int(-seconds // 1)
    days, rest = divmod(whole, 86400)
    clock = f"{rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock


def short_time(seconds: float) -> str:
    """A length of time as a person would write it into a file: 7d, 2h30m."""
    left, parts = int(seconds), []
    for unit in ("d", "h", "m", "s"):
        count, left = divmod(left, _SECONDS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def short_memory(mebibytes: int) -> str:
    """An amount of memory as a person would write it into a file: 16G, 1500M."""
    if mebibytes and mebibytes % 1024 == 0:
        return f"{mebibytes // 1024}G"
    return f"{mebibytes}M"


def round_time(seconds: float) -> float:
    """Rounded up to what a person would request; at least five minutes."""
    step = next(step for most, step in _TIME_STEPS if seconds <= most)
    return max(_SHORTEST, math.ceil(seconds / step) * step)


def round_memory(size: float) -> int:
    """Bytes to MiB, rounded up to a quarter of a GiB; above two GiB to a whole GiB."""
    mebibytes = math.ceil(size / (1 << 20))
    step = 256 if mebibytes <= _SMALL else 1024
    return max(256, math.ceil(mebibytes / step) * step)


def duration(seconds: float) -> str:
    """A length of time for people: 1.5 s, 90 s, 25 min, 3 h 20 min, 5 days."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    minutes = int((seconds + 0.5) // 60)
    if minutes < 120:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{hours // 24} days"


def ago(then: float | None) -> str:
    """How long ago it was."""
    return "-" if then is None else f"{duration(max(0.0, time.time() - then))} ago"


def clock(then: float, now: float) -> str:
    """A time of day; with the day, where it is not today."""
    local = time.localtime(then)
    same_day = local[:3] == time.localtime(now)[:3]
    return time.strftime("at %H:%M" if same_day else "on %a %d %b at %H:%M", local)


def size(count: int) -> str:
    """Bytes, in few characters."""
    value, unit = _scaled(count, 1000)
    return f"{value:.3g} {unit}"


def memory_text(count: int) -> str:
    """Memory as Slurm counts it, in powers of 1024, so that it can be compared with a request."""
    value, unit = _scaled(count, 1024)
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def _scaled(value: float, base: int) -> tuple[float, str]:
    for unit in ("bytes", "KB", "MB", "GB"):
        if value < base:
            return value, unit
        value /= base
    return value, "TB"


def number(value: Any) -> str:
    """A value in few characters."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, int):
        return str(value)
    return f"{value:.4g}"
