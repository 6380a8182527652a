"""Jobs, the newest first: what each asked for, and what it used."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict

from runyard.actions.watching import jobs
from runyard.actions.watching.figures_text import asked_text
from runyard.cli.output import ago, duration, print_json, print_table, say
from runyard.cli.watching.job_view import Line, age_lines, job_lines, print_lines
from runyard.client.api import Api
from runyard.errors import UsageError
from runyard.launch.watching import Looked
from runyard.reading.units import memory_text
from runyard.schedulers.states import states_text
from runyard.shapes.jobs import Job, JobDetail

LIMIT, DAYS = 20, 7
_MOST_AGENTS = 30


def show_jobs(
    api: Api, words: str | None, limit: int | None, *, script_only: bool, as_json: bool
) -> int:
    """A list, or one job in full; or nothing but its script."""
    chosen = jobs.choose_jobs(api, words, limit if limit is not None or as_json else LIMIT)
    if isinstance(chosen, list):
        if script_only:
            raise UsageError("--script is of one job", mend="runyard status JOB --script")
        return _print_list(jobs.look_at_jobs(api, chosen), as_json=as_json)
    if script_only:
        print(jobs.script_of(chosen), end="")
        return 0
    return _print_job(jobs.look_at_job(api, chosen), as_json=as_json)


def _print_list(listed: jobs.JobList, *, as_json: bool) -> int:
    if as_json:
        print_json([jobs.job_json(job, listed.looked) for job in listed.jobs])
        return 0
    if not listed.jobs:
        say("no jobs yet: `runyard submit -- python train.py` makes one")
        return 0
    print_table(
        ("JOB", "SWEEP", "STATE", "TIME", "CPU", "MEMORY", "AGE", "NAME"), map(_row, listed.jobs)
    )
    print_lines(age_lines(listed.looked))
    if listed.note is not None:
        say(f"{listed.note}: CPU and memory are not known, the times are runyard's own")
    return 0


def _row(job: Job) -> tuple[str, ...]:
    number = job["job_id"] if job["tasks"] == 1 else f"{job['job_id']} x{job['tasks']}"
    state = states_text(job["states"]) or "submitted"
    age = duration(max(0.0, time.time() - job["submitted_at"]))
    use = _use_cells(jobs.use_so_far(job))
    return (number, job["sweep_id"] or job["kind"], state, *use, age, job["name"])


def _use_cells(use: jobs.JobUse) -> tuple[str, str, str]:
    """Time, CPU and memory, each with its share of what was asked."""
    return _cell(use.time, duration), use.cpu.share, _cell(use.memory, _memory_text)


def _cell(use: jobs.Use, text: Callable[[float], str]) -> str:
    if use.used is None:
        return "-"
    return f"{text(use.used)} ({use.share})" if use.had else text(use.used)


def _memory_text(size: float) -> str:
    return memory_text(int(size))


def _print_job(account: jobs.JobAccount, *, as_json: bool) -> int:
    job, script = account.job, account.script
    if as_json:
        more = {"agents": account.detail["agents"], "script": script}
        print_json({**jobs.job_json(job, account.looked), **more})
        return 0
    print_lines(_detail_lines(job, account.detail, account.looked))
    print_lines(efficiency_lines(job))
    if account.note is not None and job["ended_at"] is not None:
        say(f"{account.note}: CPU and memory are what agents measured of the trials")
    elif job["ended_at"] is not None and (command := jobs.site_command()) is not None:
        say(f"as the site tells it:  {command} {job['job_id']}")
    print_lines(age_lines(account.looked))
    if script is not None:
        print(f"\n{jobs.script_file(job)}\n")
        print(script, end="")
    return 0


def _detail_lines(job: Job, detail: JobDetail, looked: Looked) -> list[Line]:
    lines = job_lines(job, looked)
    facts = {
        "sweep": job["sweep_id"] and f"{job['sweep_id']}  (`runyard status {job['sweep_id']}`)",
        "submitted": f"{ago(job['submitted_at'])}, to {job['cluster'] or 'Slurm'}",
        "asked": asked_text(job["asked"]),
        "log": job["log_pattern"] and f"{job['log_pattern']}  (`runyard logs {job['job_id']}`)",
        "code": job["snapshot"],
    }
    if facts["asked"] and job["tasks"] > 1:
        facts["asked"] += " each"
    shown = [f"{name:<10} {text}" for name, text in facts.items() if text]
    for agent in detail["agents"][:_MOST_AGENTS]:
        end = "" if agent["left_at"] is None else f", left {ago(agent['left_at'])}"
        where = f"{agent['job']} on {agent['node'] or agent['host']}"
        at_work = f"{agent['running']} of {agent['slots']} slots at work"
        shown.append(f"agent {agent['key']}  {where}, {at_work}{end}")
        if agent["packing"]:
            shown.append(f"  {agent['packing']}")
    if len(detail["agents"]) > _MOST_AGENTS:
        shown.append(f"... and {len(detail['agents']) - _MOST_AGENTS} more agents")
    head = f"{lines[0][0].strip()}  {job['name']}"
    return [(head, "bold"), *lines[1:], *((f"  {line}", None) for line in shown)]


def efficiency_lines(job: Job) -> list[Line]:
    """What was used of what was had, as `seff` tells it."""
    use = jobs.use_of_job(job)
    rows = [
        (name, text(part.used) + (f" of {text(part.had)}" if part.had else ""), part.share)
        for name, part, text in (
            ("longest task" if job["tasks"] > 1 else "time", use.time, duration),
            ("CPU", use.cpu, duration),
            ("memory", use.memory, _memory_text),
        )
        if part.used is not None
    ]
    if job["used"].get("gpu_seconds_held"):
        rows.append(("GPU", f"held for {duration(job['used']['gpu_seconds_held'])} in all", ""))
    return [(f"  {name:<12} {text:<32} {share}".rstrip(), None) for name, text, share in rows]


def show_history(days: int, limit: int | None, *, as_json: bool) -> int:
    """Every job of the user's, whoever submitted it, from Slurm's accounting."""
    records = jobs.job_history(days)
    shown = records[: limit if limit is not None or as_json else LIMIT]
    if as_json:
        print_json([{**asdict(record), "state": record.state.name} for record in shown])
        return 0
    if not records:
        say(f"Slurm's accounting has no job of yours of the last {days} days")
        return 0
    rows = []
    for job in shown:
        use = _use_cells(jobs.use_of_record(job))
        rows.append((job.which, job.state.says, *use, ago(job.submitted), job.name))
    print_table(("JOB", "STATE", "TIME", "CPU", "MEMORY", "AGE", "NAME"), rows)
    if len(records) > len(shown):
        say(f"there are {len(records) - len(shown)} more: -l {len(records)} lists them")
    return 0
