"""What runs now, trials and the jobs that they are in, and the CPU, memory and GPU it uses."""

from __future__ import annotations

from runyard.actions.watching.usage_now import UsageNow, seconds_of, seconds_since, watch_usage
from runyard.cli.connect import server
from runyard.cli.output import console, duration, print_json, print_table, say
from runyard.cli.watching.job_view import memory_text
from runyard.client.api import Api
from runyard.client.sweeps import Trial
from runyard.schedulers.jobs import RunningTask


def show_usage(api: Api, words: str | None, *, is_watched: bool, as_json: bool) -> int:
    for usage in watch_usage(words, api, server, is_watched=is_watched):
        if as_json:
            print_json(usage.to_json())
            continue
        if is_watched:
            console().clear()
        _print(usage)
    return 0


def _print(usage: UsageNow) -> None:
    trials, tasks = usage.trials, usage.tasks
    if not trials and not tasks:
        say("no trial and no job of yours runs; `runyard status` shows runs, too")
    if trials:
        print_table(
            ("TRIAL", "NODE", "JOB", "TIME", "CPU", "MEMORY", "GPU", "GPU MEM", "STEPS/S"),
            map(_trial_row, trials),
        )
    if tasks:
        if trials:
            print()
        print_table(
            ("JOB", "NODE", "TIME", "CPUS", "CPU", "MEMORY", "GPUS", "NAME"), map(_task_row, tasks)
        )
    if usage.trouble is not None:
        say(usage.trouble)


def _trial_row(trial: Trial) -> tuple[str, ...]:
    usage = trial["usage"] or {}
    seconds = seconds_of(trial)
    gpu, steps = usage.get("gpu_use"), usage.get("steps_per_second")
    return (
        trial["name"],
        trial["node"] or trial["host"] or "-",
        trial["job"] or "-",
        duration(seconds),
        _percent(usage.get("cpu_seconds"), seconds),
        _size(usage.get("memory_peak")),
        "-" if gpu is None else f"{100 * gpu:.0f}%",
        _size(usage.get("vram_peak")),
        "-" if steps is None else f"{steps:.3g}",
    )


def _task_row(task: RunningTask) -> tuple[str, ...]:
    seconds = seconds_since(task.started)
    return (
        task.which,
        task.nodes,
        duration(seconds),
        str(task.cpus),
        _percent(task.cpu_seconds, seconds),
        _size(task.memory_peak) + (f"/{memory_text(task.memory)}" if task.memory else ""),
        task.gpus or "-",
        task.name,
    )


def _percent(used: float | None, seconds: float) -> str:
    return "-" if used is None or seconds < 1 else f"{100 * used / seconds:.0f}%"


def _size(count: float | None) -> str:
    return "-" if count is None else memory_text(int(count))
