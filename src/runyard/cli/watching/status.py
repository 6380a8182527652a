"""How all that is at work stands: sweeps, their jobs and agents, runs; or one of them.

  runyard status                 all that is not over
  runyard status SWEEP --watch   one sweep, shown anew until it is over
  runyard status 4021            a job, by Slurm's number; 4021_7 is one of its tasks
  runyard status TRIAL           a trial or a run

Slurm is asked once, for all jobs together, and says why those that wait do so and when they may
start. Where it does not answer, what is shown says how old it is.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict
from typing import Any

from runyard.actions.watching.failures import is_list
from runyard.actions.watching.status import (
    MOST_FAILED,
    Status,
    StatusRequest,
    submit_held,
    watch,
)
from runyard.actions.watching.troubles import hangs_for, is_left_alone
from runyard.cli.completers import NAMED, complete_named
from runyard.cli.connect import server
from runyard.cli.letters import spelled
from runyard.cli.output import ago, duration, number, print_json, say, show
from runyard.cli.streams import unfiltered
from runyard.cli.watching.attempt_usage import usage_text
from runyard.cli.watching.best import values_text
from runyard.cli.watching.chain_view import chain_json, chain_lines
from runyard.cli.watching.job_view import (
    Line,
    age_lines,
    asked_text,
    job_json,
    job_lines,
    jobs_lines,
    print_lines,
    slurm_json,
    task_lines,
)
from runyard.cli.watching.sweep_view import STATES
from runyard.cli.watching.sweeps import progress
from runyard.client.api import Run
from runyard.client.jobs import Job
from runyard.client.sweeps import ENDED_STATES, OPEN_STATES, Sweep, SweepAgent, Trial
from runyard.launch.watching import Looked

_MOST_AGENTS = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_argument(
        "what", nargs="?", metavar=NAMED, help="which one (default: all that is at work)"
    )
    which.completer = complete_named  # type: ignore[attr-defined]
    parser.add_argument(
        *spelled("--watch"), action="store_true", help="show it anew until it is over"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    api = server()
    submit_held(api, show)
    for status in watch(StatusRequest(args.what, watch=args.watch), api, server):
        if args.json:
            print_json(_as_json(status))
            continue
        if args.watch and sys.stdout.isatty():
            print("\033[2J\033[H", end="", file=unfiltered(sys.stdout))
        _print(status)
    return 0


def _as_json(shown: Status) -> dict[str, Any]:
    return {
        "sweeps": [
            {
                **sweep,
                "failures": [{"trial": one, "why": why} for one, why in failed],
                "chain": chain_json(shown.chains.get(sweep["key"])),
                "jobs": [job_json(job, shown.looked) for job in shown.of(sweep)],
            }
            for sweep, failed in shown.sweeps
        ],
        "runs": shown.runs,
        "jobs": [job_json(job, shown.looked) for job in shown.others],
        "slurm": slurm_json(shown.looked),
        "unreached": [asdict(one) for one in shown.unreached],
    }


def _print(shown: Status) -> None:
    if not shown.sweeps and not shown.runs and not shown.jobs:
        say("nothing is at work; `runyard sweeps`, `runyard runs` and `runyard jobs` list what was")
    for sweep, failed in shown.sweeps:
        jobs = shown.of(sweep)
        print_lines(sweep_lines(sweep, failed, jobs))
        is_open = sweep["state"] in OPEN_STATES
        print_lines(chain_lines(shown.chains.get(sweep["key"]), is_open=is_open))
        print_lines(jobs_lines(jobs, shown.looked, sweep["id"]))
    for one in shown.runs:
        print_lines(_run_lines(one))
    for job in shown.others:
        print_lines(_job_lines(job, shown.looked))
        if shown.task is not None and job["array"] is not None:
            print_lines(task_lines(job, shown.task, shown.looked))
    print_lines(age_lines(shown.looked))
    print_lines(
        [
            (f"{one.node}{f', job {one.job}' if one.job else ''}: {one.why}", "red")
            for one in shown.unreached
        ]
    )


def _run_lines(one: Run) -> list[Line]:
    where = f" on {one['host']}" if one["host"] else ""
    head = f"run {one['id']}  {one['name']}  {one['project']}  {one['state']}"
    if one["state"] == "running":
        since = duration(max(0.0, time.time() - (one["started_at"] or one["created_at"])))
        return [(f"{head} for {since}{where}, {one['steps']} steps", None)]
    code = f" (exit code {one['exit_code']})" if one["exit_code"] else ""
    ended = f" {ago(one['ended_at'])}" if one["ended_at"] is not None else ""
    return [(f"{head}{code}{ended}{where}, {one['steps']} steps", None)]


def _job_lines(job: Job, looked: Looked) -> list[Line]:
    lines = job_lines(job, looked)
    head = f"{lines[0][0].strip()}  {job['name']}"
    of = f"    agents of sweep {job['sweep_id']}" if job["sweep_id"] else ""
    asked = asked_text(job["asked"])
    more = [
        part
        for part in (
            of.strip(),
            f"{'each asks' if job['tasks'] > 1 else 'asks'} for {asked}" if asked else "",
        )
        if part
    ]
    return [
        (head, "bold"),
        *([(f"    {'; '.join(more)}", None)] if more else []),
        *lines[1:],
    ]


def sweep_lines(
    sweep: Sweep, failed: list[tuple[Trial, str]], jobs: list[Job] | None = None
) -> list[Line]:
    """A sweep at a glance, line by line, each with its colour."""
    counts = sweep["counts"]
    named = sweep["id"] if sweep["name"] == sweep["id"] else f"{sweep['id']} {sweep['name']}"
    kind = "list" if is_list(sweep) else sweep["method"]
    head = f"sweep {named}  {sweep['project']}  {kind}  {sweep['state']}  {progress(sweep)}"
    lines: list[Line] = [(head, "bold")]
    parts = [f"{counts[state]} {state}" for state in STATES if counts[state]]
    left = sweep["eta_seconds"]
    if sweep["state"] in OPEN_STATES and left:
        parts.append(f"about {duration(left)} left")
    lines.append((f"  {', '.join(parts) or 'no trials yet'}", None))
    if sweep["cause"]:
        lines.append((f"  {sweep['cause']}", "red"))
    best = sweep["best"]
    if best is not None and best["value"] is not None:
        value = f"{sweep['metric']} {number(best['value'])}"
        lines.append((f"  best  {value}  {best['name']}  {values_text(best['values'])}", "green"))
    lines += _agent_lines(sweep)
    unfinished = sum(counts.values()) > sum(counts[state] for state in ENDED_STATES)
    if is_left_alone(sweep, jobs or ()):
        more = "unfinished trials" if unfinished else "more to do"
        lines.append((f"  nobody works on it, and it has {more}: `runyard sweep {sweep['id']}`",
                      "yellow"))  # fmt: skip
    for trial, why in failed[-MOST_FAILED:]:
        lines.append((f"  failed  {trial['name']}  {why}", "red"))
    if counts["failed"] > MOST_FAILED:
        lines.append((f"  ... and {counts['failed'] - MOST_FAILED} more failed", "red"))
    return lines


def _agent_lines(sweep: Sweep) -> list[Line]:
    agents = sweep["agents"]
    lines: list[Line] = []
    for agent in agents[:_MOST_AGENTS]:
        at_work = f"{agent['running']} of {agent['slots']} slots at work"
        lines.append((f"  agent {agent['key']}  {at_work}  ({_where(agent)})", None))
        used = usage_text(agent["usage"])
        lines += [(f"    {used}", None)] if used else []
        lines += _over_lines(agent)
    rest = agents[_MOST_AGENTS:]
    if rest:
        running, slots = sum(one["running"] for one in rest), sum(one["slots"] for one in rest)
        lines.append((f"  ... and {len(rest)} more agents: {running} of {slots} slots at work",
                      None))  # fmt: skip
    return lines


def _over_lines(agent: SweepAgent) -> list[Line]:
    """A program that goes on long after its run has ended may hang."""
    seconds = hangs_for(agent)
    if seconds is None:
        return []
    return [(f"    a program of it runs on for {duration(seconds)} after its run has ended; "
             "it is ended once it does nothing", "yellow")]  # fmt: skip


def _where(agent: SweepAgent) -> str:
    if agent["job"] is not None:
        return f"job {agent['job']} on {agent['node'] or agent['host']}"
    if agent["pid"] is None:
        return agent["host"]
    return f"{agent['host']}, process {agent['pid']}"
