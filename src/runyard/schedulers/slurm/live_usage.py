"""What running jobs use right now: `squeue` says where they are, `sstat` what they use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from runyard.reading.units import read_whole
from runyard.schedulers.jobs import RunningTask
from runyard.schedulers.slurm.commands import ask, for_reading
from runyard.schedulers.slurm.values import read_cpu_time, read_size, read_time

_FIELDS = "%A|%F|%K|%S|%C|%m|%N|%b|%j"
# Before each resource of a list: gres:gpu:1 in 22.05, gres/gpu:1 from 24.11 on.
_GRES = re.compile(r"(?:^|(?<=,))gres[:/]")
_SECONDS = 15.0
_AT_A_TIME = 200


def running_tasks(
    environ: Mapping[str, str] | None = None, *, only: Iterable[str] | None = None
) -> list[RunningTask]:
    """One's own tasks that run, of these jobs only where some are named."""
    env = for_reading(environ)
    words = ["squeue", "--me", "--noheader", "--states=RUNNING", f"--format={_FIELDS}"]
    answer = ask(words, environ=env, patience=0.0, seconds=_SECONDS)
    if not answer.is_good:
        raise answer.refused("Slurm does not tell what runs")
    wanted = None if only is None else set(only)
    lines = [line.split("|", 8) for line in answer.output.splitlines()]
    fields = [line for line in lines if len(line) == 9 and (wanted is None or line[1] in wanted)]
    figures = _figures([line[0] for line in fields], env)
    return [_task(line, figures.get(line[0])) for line in fields]


def read_figures(text: str) -> dict[str, tuple[float, int]]:
    """What sstat printed: CPU seconds and peak memory of each job, its steps summed up."""
    figures: dict[str, tuple[float, int]] = {}
    for line in text.splitlines():
        parts = line.split("|")
        if len(parts) < 4:
            continue
        job = parts[0].partition(".")[0]
        tasks = read_whole(parts[3]) or 1
        seconds, memory = figures.get(job, (0.0, 0))
        seconds += read_cpu_time(parts[1]) * tasks
        figures[job] = (seconds, memory + (read_size(parts[2]) or 0))
    return figures


def _figures(ids: list[str], environ: Mapping[str, str]) -> dict[str, tuple[float, int]]:
    figures: dict[str, tuple[float, int]] = {}
    for begin in range(0, len(ids), _AT_A_TIME):
        named = ",".join(ids[begin : begin + _AT_A_TIME])
        words = ["sstat", "--allsteps", "--noheader", "--parsable2", "--jobs", named]
        words.append("--format=JobID,AveCPU,MaxRSS,NTasks")
        # One that has just ended makes it an error; what it says of the others counts.
        answer = ask(words, environ=environ, patience=0.0, seconds=_SECONDS)
        figures |= read_figures(answer.output)
    return figures


def _task(parts: list[str], figures: tuple[float, int] | None) -> RunningTask:
    _, job, task, start, cpus, memory, nodes, gpus, name = parts
    is_array = task not in ("", "N/A")
    return RunningTask(
        which=f"{job}_{task}" if is_array else job,
        name=name,
        nodes=nodes,
        cpus=read_whole(cpus) or 1,
        memory=read_size(memory),
        gpus=None if gpus in ("", "N/A", "(null)") else _GRES.sub("", gpus),
        started=read_time(start),
        cpu_seconds=None if figures is None else figures[0],
        memory_peak=None if figures is None else figures[1] or None,
    )
