"""What runs now, trials and the jobs that they are in, and the CPU, memory and GPU it uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runyard.actions.watching.usage_now import UsageNow, seconds_of, seconds_since, watch_usage
from runyard.cli.connect import server
from runyard.cli.output import Columns, console, duration, print_json, print_records, say
from runyard.client.api import Api
from runyard.reading.units import memory_text
from runyard.shapes.sweeps import Trial


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
        print_records(_TRIALS, trials)
    if tasks:
        if trials:
            print()
        print_records(_TASKS, tasks)
    if usage.trouble is not None:
        say(usage.trouble)


def _percent(used: float | None, seconds: float) -> str:
    return "-" if used is None or seconds < 1 else f"{100 * used / seconds:.0f}%"


def _size(count: float | None) -> str:
    return "-" if count is None else memory_text(int(count))


def _use(name: str, text: Callable[[float], str]) -> Callable[[Any], str]:
    """A figure of a trial's use, where it is known."""

    def cell(trial: Trial) -> str:
        value = (trial["usage"] or {}).get(name)
        return "-" if value is None else text(value)

    return cell


_TRIALS: Columns = {
    "TRIAL": "name",
    "NODE": lambda trial: trial["node"] or trial["host"] or "-",
    "JOB": lambda trial: trial["job"] or "-",
    "TIME": lambda trial: duration(seconds_of(trial)),
    "CPU": lambda trial: _percent((trial["usage"] or {}).get("cpu_seconds"), seconds_of(trial)),
    "MEMORY": _use("memory_peak", _size),
    "GPU": _use("gpu_use", lambda share: f"{100 * share:.0f}%"),
    "GPU MEM": _use("vram_peak", _size),
    "STEPS/S": _use("steps_per_second", lambda pace: f"{pace:.3g}"),
}
_TASKS: Columns = {
    "JOB": lambda task: task.which,
    "NODE": lambda task: task.nodes,
    "TIME": lambda task: duration(seconds_since(task.started)),
    "CPUS": lambda task: str(task.cpus),
    "CPU": lambda task: _percent(task.cpu_seconds, seconds_since(task.started)),
    "MEMORY": lambda task: (
        _size(task.memory_peak) + (f"/{memory_text(task.memory)}" if task.memory else "")
    ),
    "GPUS": lambda task: task.gpus or "-",
    "NAME": lambda task: task.name,
}
