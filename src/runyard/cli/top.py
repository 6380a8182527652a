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

from runyard.cli import naming
from runyard.cli.connect import server
from runyard.cli.job_view import memory_text
from runyard.cli.letters import spelled
from runyard.cli.output import console, duration, print_json, print_table, say
from runyard.client.api import Api
from runyard.client.sweeps import Sweep, Trial
from runyard.errors import UsageError
from runyard.schedulers.slurm.commands import SlurmError, SlurmMissing
from runyard.schedulers.slurm.live_usage import RunningTask, running_tasks

_EVERY = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_argument(
        "what", nargs="?", metavar=naming.METAVAR, help="which one (default: all that runs)"
    )
    which.completer = naming.complete  # type: ignore[attr-defined]
    parser.add_argument(*spelled("--watch"), action="store_true", help="show it anew until Ctrl-C")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    api = server()
    while True:
        trials, tasks, trouble = _gather(api, args.what)
        if args.json:
            print_json({"trials": [_trial_json(one) for one in trials],
                        "jobs": [asdict(one) for one in tasks], "trouble": trouble})  # fmt: skip
        else:
            if args.watch:
                console().clear()
            _print(trials, tasks, trouble)
        if not args.watch:
            return 0
        time.sleep(_EVERY)
        api = server()


def _gather(api: Api, words: str | None) -> tuple[list[Trial], list[RunningTask], str | None]:
    """Running trials, running tasks, and what kept Slurm from telling."""
    only: set[str] | None = None
    if words is None:
        trials = [
            one for sweep in api.sweeps.sweeps(open_only=True) for one in _running(api, sweep)
        ]
    else:
        found = naming.find(api, words)
        if found.sweep is not None:
            trials = _running(api, found.sweep)
            only = {_job(one) for one in trials if one["job"]}
        elif found.run is not None:
            trials = _trial_of(api, found.run["id"])
            if not trials:
                raise UsageError(
                    f"{found.run['name']} ({found.run['id']}) is no trial of a sweep that runs",
                    mend="`runyard top` shows all that runs",
                )
            only = {_job(one) for one in trials if one["job"]}
        elif found.job is not None:
            job, of = found.job["job_id"], found.job["sweep"]
            trials = [] if of is None else api.sweeps.trials(of, state="running")
            trials = [one for one in trials if _job(one) == job]
            only = {job}
        else:
            trials, only = [], {found.number or ""}
    if only is not None and not only:
        return trials, [], None
    try:
        return trials, running_tasks(only=only), None
    except SlurmMissing:
        return trials, [], None
    except SlurmError as error:
        return trials, [], f"{error.what} ({error.said})"


def _running(api: Api, sweep: Sweep) -> list[Trial]:
    if not sweep["counts"]["running"]:
        return []
    return api.sweeps.trials(sweep["key"], state="running")


def _trial_of(api: Api, run_id: str) -> list[Trial]:
    return [
        one
        for sweep in api.sweeps.sweeps(open_only=True)
        for one in _running(api, sweep)
        if one["id"] == run_id
    ]


def _job(trial: Trial) -> str:
    return (trial["job"] or "").partition("_")[0]


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
