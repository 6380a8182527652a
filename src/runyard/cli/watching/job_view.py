"""Jobs and chains of them as lines of text: tasks by state, why they wait, when they may start."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from typing import Any

from runyard.actions.watching.chains import ChainState
from runyard.actions.watching.troubles import retry_command
from runyard.cli.output import ago, duration
from runyard.cli.streams import unfiltered
from runyard.launch.watching import Looked
from runyard.printable import printable
from runyard.reading.units import clock
from runyard.schedulers.choice import cluster
from runyard.schedulers.states import state_named, states_text
from runyard.shapes.jobs import Job

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
    is_over = state.over >= state.links
    return [(f"  chain: {state.in_words()}", "yellow" if is_over else None)]


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

    from runyard.cli.help_text import WHOLE_WORDS

    indent = " " * (len(line) - len(line.lstrip()))
    indents: Any = {"initial_indent": indent, "subsequent_indent": f"{indent}  "}
    return textwrap.wrap(line.lstrip(), max(40, width - 1), **indents, **WHOLE_WORDS) or [line]
