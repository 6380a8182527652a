"""Jobs and chains of them as lines of text: tasks by state, why they wait, when they may start."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from runyard.actions.watching.chains import ChainState
from runyard.actions.watching.troubles import retry_command
from runyard.cli.output import ago, duration, number, size
from runyard.cli.streams import unfiltered
from runyard.client.jobs import Job
from runyard.launch.watching import Looked
from runyard.printable import printable
from runyard.reading.units import memory_text as memory_text
from runyard.schedulers.choice import cluster
from runyard.schedulers.states import state_named, states_text

Line = tuple[str, str | None]
_MOST_ENDED = 3
_COLOURS = {"bold": 1, "red": 31, "green": 32, "yellow": 33}


def job_lines(job: Job, looked: Looked, *, now: float | None = None) -> list[Line]:
    """A job at a glance, line by line, each with its colour."""
    now = time.time() if now is None else now
    kind = "" if job["kind"] == "agents" else f" ({job['kind']})"
    lines: list[Line] = [(f"  job {job['job_id']}{kind}  {_summary(job, looked, now)}", None)]
    reason = cluster().read_reason(job["reason"])
    if job["ended_at"] is None and reason is not None:
        lines.append((f"    waits: {reason}", "yellow" if reason.is_stuck else None))
    if job["ended_at"] is None and job["starts_at"] is not None and job["starts_at"] > now:
        then = clock(job["starts_at"], now)
        lines.append(
            (f"    may start {then}, in {duration(job['starts_at'] - now)} (Slurm's guess)", None)
        )
    command = retry_command(job)
    if command is not None:
        lines.append((f"    `{command}`", "yellow"))
    return lines


def jobs_lines(jobs: Sequence[Job], looked: Looked, of: str) -> list[Line]:
    """A sweep's jobs: all that are not over, and the last of those that are."""
    is_open = [job for job in jobs if job["ended_at"] is None]
    ended = [job for job in jobs if job["ended_at"] is not None]
    lines = [line for job in is_open for line in job_lines(job, looked)]
    lines += [line for job in ended[:_MOST_ENDED] for line in job_lines(job, looked)]
    if len(ended) > _MOST_ENDED:
        more = len(ended) - _MOST_ENDED
        lines.append((f"  ... and {more} more jobs have ended: `runyard status {of} --jobs`", None))
    return lines


def age_lines(looked: Looked) -> list[Line]:
    """How old what is shown of jobs is, where Slurm could not be asked."""
    if looked.trouble is None:
        return []
    polled = [job["polled_at"] for job in looked.jobs if job["ended_at"] is None]
    oldest = min((moment for moment in polled if moment is not None), default=None)
    since = "never asked before" if oldest is None else f"jobs as they were {ago(oldest)}"
    return [(f"  {looked.trouble}; {since}", "yellow")]


def chain_lines(state: ChainState | None, *, is_open: bool) -> list[Line]:
    """One line, while there is work."""
    if state is None or not is_open:
        return []
    now = f"link {state.over + 1} of {state.links} "
    now += "is at work" if state.at_work else "is next"
    later = state.to_come - (0 if state.at_work else 1)
    side = f", {state.lanes} agents side by side" if state.lanes > 1 else ""
    if state.over >= state.links:
        mend = "`runyard agents add` sends more"
        return [(f"  chain: all {state.links} links are over, and there is work left; {mend}",
                 "yellow")]  # fmt: skip
    time = ""
    if state.seconds_each and later > 0:
        time = f", up to {duration(state.seconds_each * later)}"
    return [(f"  chain: {now}{side}; {max(0, later)} more to come{time}", None)]


def print_lines(lines: Sequence[Line]) -> None:
    """Each with its colour; on a terminal, long ones go on below their beginning.

    Without rich, whose import takes longer than all the rest of a `status`.
    """
    on_terminal, out = sys.stdout.isatty(), unfiltered(sys.stdout)
    width = shutil.get_terminal_size().columns if on_terminal else 0
    plain = not on_terminal or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    for line, style in lines:
        code = None if plain or style is None else _COLOURS[style]
        for part in _wrapped(line, width) if on_terminal else [line]:
            text = printable(part)
            print(text if code is None else f"\033[{code}m{text}\033[0m", file=out)


def clock(then: float, now: float) -> str:
    """A time of day; with the day, where it is not today."""
    local = time.localtime(then)
    same_day = local[:3] == time.localtime(now)[:3]
    return time.strftime("at %H:%M" if same_day else "on %a %d %b at %H:%M", local)


def asked_text(request: dict[str, Any]) -> str:
    """What each task asked for: 2 GPUs, 8 CPUs, 16 GB, 2 h 0 min."""
    parts = []
    if (request.get("nodes") or 1) > 1:
        parts.append(f"{request['nodes']} nodes")
    if request.get("gpus"):
        kind = f" {request['gpu_type']}" if request.get("gpu_type") else ""
        parts.append(f"{request['gpus']}{kind} GPU{'s' if request['gpus'] != 1 else ''}")
    if request.get("cpus"):
        parts.append(f"{request['cpus']} CPU{'s' if request['cpus'] != 1 else ''}")
    if request.get("memory"):
        parts.append(memory_text(int(request["memory"]) << 20))
    if request.get("time"):
        parts.append(duration(float(request["time"])))
    return ", ".join(parts)


def usage_text(usage: Mapping[str, Any] | None) -> str:
    """One line, of what is known; empty if nothing is."""
    if not usage:
        return ""
    parts = []
    if "memory_peak" in usage:
        parts.append(f"{size(int(usage['memory_peak']))} memory")
    if "vram_peak" in usage:
        parts.append(f"{size(int(usage['vram_peak']))} GPU memory")
    if "gpu_use" in usage:
        parts.append(f"GPU {100 * usage['gpu_use']:.0f} % busy")
    if "cpu_seconds" in usage:
        parts.append(f"{duration(usage['cpu_seconds'])} CPU")
    if "read_bytes" in usage and usage["read_bytes"] + usage.get("written_bytes", 0):
        read, written = size(int(usage["read_bytes"])), size(int(usage.get("written_bytes", 0)))
        parts.append(f"{read} read, {written} written")
    if "steps_per_second" in usage:
        parts.append(f"{number(usage['steps_per_second'])} steps/s")
    return ", ".join(parts)


def task_lines(job: Job, task: str, looked: Looked) -> list[Line]:
    """One task of an array, as the queue has it now."""
    state = looked.queue.get(job["key"])
    for tasks in state.tasks if state is not None else ():
        if tasks.holds(task):
            where = f" on {tasks.nodes}" if tasks.nodes else ""
            return [(f"    task {task}: {tasks.state.says}{where}", None)]
    logs = f"`runyard logs {job['job_id']}_{task}`"
    return [(f"    task {task} is not in the queue (any more): {logs}", None)]


def _summary(job: Job, looked: Looked, now: float) -> str:
    if not job["states"]:
        return f"submitted {ago(job['submitted_at'])}"
    if job["tasks"] > 1:
        return f"{job['tasks']} tasks: {states_text(job['states'])}"
    state = state_named(next(iter(job["states"])))
    queue = looked.queue.get(job["key"])
    nodes = next((task.nodes for task in queue.tasks if task.nodes), None) if queue else None
    where = f" on {nodes}" if nodes else ""
    if state.phase == "running" and job["started_at"] is not None:
        return f"{state.says}{where} for {duration(max(0.0, now - job['started_at']))}"
    if state.phase == "ended" and job["ended_at"] is not None:
        return f"{state.says} {ago(job['ended_at'])}"
    return f"{state.says}{where}"


def _wrapped(line: str, width: int) -> list[str]:
    if len(line) < width:
        return [line]
    import textwrap

    indent = len(line) - len(line.lstrip())
    return textwrap.wrap(
        line.lstrip(), max(40, width - 1), initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2), break_long_words=False, break_on_hyphens=False,
    ) or [line]  # fmt: skip
