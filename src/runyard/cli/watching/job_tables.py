"""Jobs, the newest first: what each asked for, and what it used."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from runyard.actions.watching.jobs import (
    JobAccount,
    JobList,
    choose_jobs,
    job_history,
    job_json,
    look_at_job,
    look_at_jobs,
    script_file,
    script_of,
    site_command,
)
from runyard.cli.output import ago, duration, print_json, print_table, say
from runyard.cli.watching.job_view import (
    Line,
    age_lines,
    asked_text,
    job_lines,
    memory_text,
    print_lines,
)
from runyard.client.api import Api
from runyard.client.jobs import Job, JobDetail
from runyard.errors import UsageError
from runyard.launch.watching import Looked
from runyard.schedulers.jobs import Record
from runyard.schedulers.states import states_text

LIMIT, DAYS = 20, 7
_MOST_TASKS = 30


def show_jobs(
    api: Api, words: str | None, limit: int | None, *, script_only: bool, as_json: bool
) -> int:
    """A list, or one job in full; or nothing but its script."""
    chosen = choose_jobs(api, words, limit if limit is not None or as_json else LIMIT)
    if isinstance(chosen, list):
        if script_only:
            raise UsageError("--script is of one job", mend="runyard status JOB --script")
        return _print_list(look_at_jobs(api, chosen), as_json=as_json)
    if script_only:
        print(script_of(chosen), end="")
        return 0
    return _print_job(look_at_job(api, chosen), as_json=as_json)


def _print_list(listed: JobList, *, as_json: bool) -> int:
    if as_json:
        print_json([job_json(job, listed.looked) for job in listed.jobs])
        return 0
    if not listed.jobs:
        say("no jobs yet: `runyard submit -- python train.py` makes one")
        return 0
    print_table(
        ("JOB", "SWEEP", "STATE", "TIME", "CPU", "MEMORY", "AGE", "NAME"),
        (
            (
                job["job_id"] if job["tasks"] == 1 else f"{job['job_id']} x{job['tasks']}",
                job["sweep_id"] or job["kind"],
                states_text(job["states"]) or "submitted",
                _time(job),
                _share(job["used"].get("cpu_seconds"), job["used"].get("cpu_seconds_held")),
                _memory(job),
                duration(max(0.0, time.time() - job["submitted_at"])),
                job["name"],
            )
            for job in listed.jobs
        ),
    )
    print_lines(age_lines(listed.looked))
    if listed.note is not None:
        say(f"{listed.note}: CPU and memory are not known, the times are runyard's own")
    return 0


def _time(job: Job) -> str:
    """The longest task's time, and how much that is of what was asked."""
    seconds = job["used"].get("longest_seconds")
    if seconds is None and job["started_at"] is not None:
        seconds = max(0.0, (job["ended_at"] or time.time()) - job["started_at"])
    asked = job["used"].get("limit_seconds") or job["asked"].get("time")
    return "-" if seconds is None else _part(duration(seconds), seconds, asked)


def _memory(job: Job) -> str:
    peak = job["used"].get("memory_peak")
    asked = job["used"].get("memory_asked") or (job["asked"].get("memory") or 0) << 20
    return "-" if peak is None else _part(memory_text(int(peak)), peak, asked)


def _part(text: str, used: float, asked: float | None) -> str:
    return f"{text} ({_share(used, float(asked))})" if asked else text


def _share(used: float | None, held: float | None) -> str:
    return "-" if used is None or not held else f"{100 * used / held:.0f}%"


def _print_job(account: JobAccount, *, as_json: bool) -> int:
    job, script = account.job, account.script
    if as_json:
        more = {"agents": account.detail["agents"], "script": script}
        print_json({**job_json(job, account.looked), **more})
        return 0
    print_lines(_detail_lines(job, account.detail, account.looked))
    print_lines(efficiency_lines(job))
    if account.note is not None and job["ended_at"] is not None:
        say(f"{account.note}: CPU and memory are what agents measured of the trials")
    elif job["ended_at"] is not None and (command := site_command()) is not None:
        say(f"as the site tells it:  {command} {job['job_id']}")
    print_lines(age_lines(account.looked))
    if script is not None:
        print(f"\n{script_file(job)}\n")
        print(script, end="")
    return 0


def _detail_lines(job: Job, detail: JobDetail, looked: Looked) -> list[Line]:
    lines = job_lines(job, looked)
    head = f"{lines[0][0].strip()}  {job['name']}"
    told: list[Line] = [(head, "bold"), *lines[1:]]
    if job["sweep_id"]:
        told.append((f"  sweep      {job['sweep_id']}  (`runyard status {job['sweep_id']}`)", None))
    told.append((f"  submitted  {ago(job['submitted_at'])}, to {job['cluster'] or 'Slurm'}", None))
    asked = asked_text(job["asked"])
    if asked:
        each = " each" if job["tasks"] > 1 else ""
        told.append((f"  asked      {asked}{each}", None))
    if job["log_pattern"]:
        told.append((f"  log        {job['log_pattern']}  (`runyard logs {job['job_id']}`)", None))
    if job["snapshot"]:
        told.append((f"  code       {job['snapshot']}", None))
    for agent in detail["agents"][:_MOST_TASKS]:
        where = agent["node"] or agent["host"]
        end = "" if agent["left_at"] is None else f", left {ago(agent['left_at'])}"
        told.append((f"  agent {agent['key']}  {agent['job']} on {where}, {agent['running']} of "
                     f"{agent['slots']} slots at work{end}", None))  # fmt: skip
    if len(detail["agents"]) > _MOST_TASKS:
        told.append((f"  ... and {len(detail['agents']) - _MOST_TASKS} more agents", None))
    return told


def efficiency_lines(job: Job) -> list[Line]:
    """What was used of what was had, as `seff` tells it."""
    used, asked = job["used"], job["asked"]
    rows: list[tuple[str, str, str]] = []
    seconds = used.get("longest_seconds")
    limit = used.get("limit_seconds") or asked.get("time")
    if seconds is not None:
        longest = "longest task" if job["tasks"] > 1 else "time"
        rows.append((longest, _of(duration(seconds), limit and duration(float(limit))),
                     _share(seconds, limit)))  # fmt: skip
    if used.get("cpu_seconds") is not None:
        held = used.get("cpu_seconds_held")
        rows.append(("CPU", _of(duration(used["cpu_seconds"]), held and duration(held)),
                     _share(used["cpu_seconds"], held)))  # fmt: skip
    memory = used.get("memory_asked") or (asked.get("memory") or 0) << 20
    if used.get("memory_peak") is not None:
        peak = int(used["memory_peak"])
        rows.append(("memory", _of(memory_text(peak), memory and memory_text(int(memory))),
                     _share(peak, memory)))  # fmt: skip
    if used.get("gpu_seconds_held"):
        rows.append(("GPU", f"held for {duration(used['gpu_seconds_held'])} in all", ""))
    return [(f"  {name:<12} {text:<32} {share}".rstrip(), None) for name, text, share in rows]


def _of(used: str, asked: Any) -> str:
    return f"{used} of {asked}" if asked else used


def show_history(days: int, limit: int | None, *, as_json: bool) -> int:
    """Every job of the user's, whoever submitted it, from Slurm's accounting."""
    records = job_history(days)
    shown = records[: limit if limit is not None or as_json else LIMIT]
    if as_json:
        print_json([{**asdict(record), "state": record.state.name} for record in shown])
        return 0
    if not records:
        say(f"Slurm's accounting has no job of yours of the last {days} days")
        return 0
    print_table(
        ("JOB", "STATE", "TIME", "CPU", "MEMORY", "AGE", "NAME"),
        (
            (
                record.which,
                record.state.says,
                _part(duration(record.seconds), record.seconds, record.limit),
                _share(record.cpu_seconds, record.cpus * record.seconds),
                _record_memory(record),
                ago(record.submitted),
                record.name,
            )
            for record in shown
        ),
    )
    if len(records) > len(shown):
        say(f"there are {len(records) - len(shown)} more: -l {len(records)} lists them")
    return 0


def _record_memory(record: Record) -> str:
    if record.memory_peak is None:
        return "-"
    return _part(memory_text(record.memory_peak), record.memory_peak, record.memory_asked)
