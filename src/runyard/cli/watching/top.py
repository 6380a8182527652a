"""What runs now, and how much CPU, memory and GPU it uses: trials, and the jobs that they are in.

  runyard top                 everything of yours that runs
  runyard top SWEEP --watch   one sweep, shown anew every few seconds
  runyard top 4021            one job

A trial's figures come from its agent, which looks at the trial's own processes on its node; a job's
come from Slurm. CPU is the mean since the start, in percent of one CPU. Memory is the peak.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from runyard.actions.watching.usage_now import usage_now
from runyard.cli.completers import NAMED, complete_named
from runyard.cli.connect import server
from runyard.cli.letters import spelled
from runyard.cli.output import console, duration, print_json, print_table, say
from runyard.cli.watching.job_view import memory_text
from runyard.client.sweeps import Trial
from runyard.schedulers.jobs import RunningTask

_EVERY = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_argument(
        "what", nargs="?", metavar=NAMED, help="which one (default: all that runs)"
    )
    which.completer = complete_named  # type: ignore[attr-defined]
    parser.add_argument(*spelled("--watch"), action="store_true", help="show it anew until Ctrl-C")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    api = server()
    while True:
        usage = usage_now(api, args.what)
        if args.json:
            print_json({"trials": [_trial_json(trial) for trial in usage.trials],
                        "jobs": [asdict(task) for task in usage.tasks],
                        "trouble": usage.trouble})  # fmt: skip
        else:
            if args.watch:
                console().clear()
            _print(usage.trials, usage.tasks, usage.trouble)
        if not args.watch:
            return 0
        time.sleep(_EVERY)
        api = server()


def _print(trials: Sequence[Trial], tasks: Sequence[RunningTask], trouble: str | None) -> None:
    if not trials and not tasks:
        say("no trial and no job of yours runs; `runyard status` shows runs, too")
    if trials:
        print_table(
            ("TRIAL", "NODE", "JOB", "TIME", "CPU", "MEMORY", "GPU", "GPU MEM", "STEPS/S"),
            (_trial_row(one) for one in trials),
        )
    if tasks:
        if trials:
            print()
        print_table(
            ("JOB", "NODE", "TIME", "CPUS", "CPU", "MEMORY", "GPUS", "NAME"),
            (_task_row(one) for one in tasks),
        )
    if trouble is not None:
        say(trouble)


def _trial_row(trial: Trial) -> tuple[str, ...]:
    usage = trial["usage"] or {}
    seconds = _since(trial["began_at"] or trial["started_at"])
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
    seconds = _since(task.started)
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


def _trial_json(trial: Trial) -> dict[str, Any]:
    seconds = _since(trial["began_at"] or trial["started_at"])
    told = ("id", "name", "job", "node", "host", "usage")
    return {**{name: trial[name] for name in told}, "seconds": seconds}  # type: ignore[literal-required]


def _since(then: float | None) -> float:
    return 0.0 if then is None else max(0.0, time.time() - then)


def _percent(used: float | None, seconds: float) -> str:
    return "-" if used is None or seconds < 1 else f"{100 * used / seconds:.0f}%"


def _size(count: float | None) -> str:
    return "-" if count is None else memory_text(int(count))
