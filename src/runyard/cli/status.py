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
import contextlib
import sys
import time
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from runyard.cli import naming
from runyard.cli.attempt_usage import usage_text
from runyard.cli.best import values_text
from runyard.cli.chain_view import ChainState, chain_json, chain_lines, chain_of
from runyard.cli.connect import server
from runyard.cli.job_view import (
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
from runyard.cli.letters import spelled
from runyard.cli.output import ago, duration, number, print_json, say
from runyard.cli.streams import unfiltered
from runyard.cli.sweep_view import ENDED, STATES
from runyard.cli.sweep_watch import failures, is_list
from runyard.cli.sweeps import progress
from runyard.client.api import Api, Run, RunDetail
from runyard.client.jobs import Job
from runyard.client.sweeps import Sweep, SweepAgent, Trial
from runyard.client.unreached import read_unreached
from runyard.errors import NotFoundError, RunyardError
from runyard.home import locate
from runyard.launch.watching import Looked, look

_OPEN = ("running", "paused")
_EVERY = 2.0
# The controller serves a whole site: it is not asked as often as our own server.
_ASK_SLURM_EVERY = 15.0
# A client ends its run a moment before its program ends.
_MAY_HANG_SECONDS = 60.0
_MOST_FAILED, _MOST_AGENTS, _MOST_JOBS = 5, 6, 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_argument(
        "what", nargs="?", metavar=naming.METAVAR, help="which one (default: all that is at work)"
    )
    which.completer = naming.complete  # type: ignore[attr-defined]
    parser.add_argument(
        *spelled("--watch"), action="store_true", help="show it anew until it is over"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


@dataclass
class Shown:
    """What is told: sweeps with their failures, jobs, runs."""

    sweeps: list[tuple[Sweep, list[tuple[Trial, str]]]] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    looked: Looked = field(default_factory=lambda: Looked([]))
    task: str | None = None
    chains: dict[int, ChainState | None] = field(default_factory=dict)
    """By the sweep's key."""

    def of(self, sweep: Sweep) -> list[Job]:
        return [job for job in self.jobs if job["sweep"] == sweep["key"]]

    @property
    def others(self) -> list[Job]:
        """Jobs whose sweep is not among those shown."""
        keys = {sweep["key"] for sweep, _ in self.sweeps}
        return [job for job in self.jobs if job["sweep"] not in keys]

    @property
    def is_over(self) -> bool:
        return (
            all(sweep["state"] not in _OPEN for sweep, _ in self.sweeps)
            and all(run["state"] not in ("running", "pending") for run in self.runs)
            and all(job["ended_at"] is not None for job in self.jobs)
        )


def run(args: argparse.Namespace) -> int:
    api, before, asked_at = server(), None, 0.0
    _send_held(api)
    while True:
        shown = _gather(api, args.what)
        if before is None or time.monotonic() - asked_at >= _ASK_SLURM_EVERY:
            before, asked_at = look(api.jobs, shown.jobs), time.monotonic()
        shown = _with(shown, before)
        shown.chains = _chains(api, shown)
        if args.json:
            print_json(_as_json(shown))
        else:
            if args.watch and sys.stdout.isatty():
                print("\033[2J\033[H", end="", file=unfiltered(sys.stdout))
            _print(shown)
        if not args.watch or shown.is_over:
            return 0
        time.sleep(_EVERY)
        api = server()


def _chains(api: Api, shown: Shown) -> dict[int, ChainState | None]:
    if not any(job["asked"].get("chain") for job in shown.jobs):
        return {}
    from runyard.launch.held import count_held

    held = count_held(locate().path)
    return {
        sweep["key"]: chain_of(api, shown.of(sweep), held.get(sweep["key"], 0))
        for sweep, _ in shown.sweeps
    }


def _send_held(api: Api) -> None:
    """Agents that a limit of Slurm's kept out, if there is room for them now."""
    if not any((locate().path / "held").glob("*.json")):
        return
    from runyard.cli.on_slurm import send_held_agents

    with contextlib.suppress(RunyardError):
        sent = send_held_agents(api, locate())
        if sent:
            say(f"{sent} agents that were held back are submitted")
    from runyard.launch.held import count_held

    for key, count in count_held(locate().path).items():
        with contextlib.suppress(RunyardError):
            name = api.sweeps.sweep(key)["id"]
            say(f"sweep {name}: {count} agents are held back until Slurm takes more of your jobs")


def _gather(api: Api, words: str | None) -> Shown:
    if words is None:
        sweeps = api.sweeps.sweeps(open_only=True)
        return Shown(
            [_with_failures(api, one) for one in sweeps],
            api.runs(state="running", alone=True),
            api.jobs.jobs(open_only=True),
        )
    found = naming.find(api, words)
    if found.sweep is not None:
        jobs = api.jobs.jobs(sweep=found.sweep["key"], limit=_MOST_JOBS)
        return Shown([_with_failures(api, found.sweep)], jobs=jobs)
    if found.run is not None:
        return Shown(runs=[found.run], jobs=_jobs_of(api, found.run))
    if found.job is not None:
        return Shown(jobs=[found.job], task=found.task)
    from runyard.cli.foreign_jobs import look_at

    looked = look_at(found.number or words)
    return Shown(jobs=looked.jobs, looked=looked, task=found.task)


def _with_failures(api: Api, sweep: Sweep) -> tuple[Sweep, list[tuple[Trial, str]]]:
    return sweep, failures(api, sweep, last=_MOST_FAILED)


def _jobs_of(api: Api, found: RunDetail) -> list[Job]:
    if found["job"] is None:
        return []
    try:
        return [api.jobs.job(found["job"])]
    except NotFoundError:
        return []


def _with(shown: Shown, before: Looked) -> Shown:
    known = {job["key"]: job for job in before.jobs}
    jobs = [known.get(job["key"], job) for job in shown.jobs]
    looked = replace(before, jobs=jobs, queue={**shown.looked.queue, **before.queue})
    return replace(shown, jobs=jobs, looked=looked)


def _as_json(shown: Shown) -> dict[str, Any]:
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
        "unreached": [asdict(one) for one in read_unreached(locate())],
    }


def _print(shown: Shown) -> None:
    if not shown.sweeps and not shown.runs and not shown.jobs:
        say("nothing is at work; `runyard sweeps`, `runyard runs` and `runyard jobs` list what was")
    for sweep, failed in shown.sweeps:
        jobs = shown.of(sweep)
        print_lines(sweep_lines(sweep, failed, jobs))
        is_open = sweep["state"] in _OPEN
        print_lines(chain_lines(shown.chains.get(sweep["key"]), is_open=is_open))
        print_lines(jobs_lines(jobs, shown.looked, sweep["id"]))
    for one in shown.runs:
        print_lines(_run_lines(one))
    for job in shown.others:
        print_lines(_job_lines(job, shown.looked))
        if shown.task is not None and job["array"] is not None:
            print_lines(task_lines(job, shown.task, shown.looked))
    print_lines(age_lines(shown.looked))
    print_lines(_unreached_lines())


def _unreached_lines() -> list[Line]:
    """Nodes whose agents wait for a server that they do not reach."""
    return [
        (f"{one.node}{f', job {one.job}' if one.job else ''}: {one.why}", "red")
        for one in read_unreached(locate())
    ]


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
    if sweep["state"] in _OPEN and left:
        parts.append(f"about {duration(left)} left")
    lines.append((f"  {', '.join(parts) or 'no trials yet'}", None))
    if sweep["cause"]:
        lines.append((f"  {sweep['cause']}", "red"))
    best = sweep["best"]
    if best is not None and best["value"] is not None:
        value = f"{sweep['metric']} {number(best['value'])}"
        lines.append((f"  best  {value}  {best['name']}  {values_text(best['values'])}", "green"))
    lines += _agent_lines(sweep)
    unfinished = sum(counts.values()) > sum(counts[state] for state in ENDED)
    are_coming = any(job["ended_at"] is None for job in jobs or ())
    if sweep["state"] == "running" and not sweep["agents"] and not are_coming:
        more = "unfinished trials" if unfinished else "more to do"
        lines.append((f"  nobody works on it, and it has {more}: `runyard sweep {sweep['id']}`",
                      "yellow"))  # fmt: skip
    for trial, why in failed[-_MOST_FAILED:]:
        lines.append((f"  failed  {trial['name']}  {why}", "red"))
    if counts["failed"] > _MOST_FAILED:
        lines.append((f"  ... and {counts['failed'] - _MOST_FAILED} more failed", "red"))
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
    since = agent.get("over_since")  # An older server does not tell.
    seconds = 0.0 if since is None else time.time() - since
    if seconds < _MAY_HANG_SECONDS:
        return []
    return [(f"    a program of it runs on for {duration(seconds)} after its run has ended; "
             "it is ended once it does nothing", "yellow")]  # fmt: skip


def _where(agent: SweepAgent) -> str:
    if agent["job"] is not None:
        return f"job {agent['job']} on {agent['node'] or agent['host']}"
    if agent["pid"] is None:
        return agent["host"]
    return f"{agent['host']}, process {agent['pid']}"
