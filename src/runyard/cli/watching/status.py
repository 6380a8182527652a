"""How all that is at work stands: sweeps, their jobs and agents, runs; or one of them.

  runyard status                   all that is not over
  runyard status SWEEP --watch     one sweep, shown anew until it is over
  runyard status 4021              a job, by Slurm's number; 4021_7 is one of its tasks
  runyard status TRIAL             a trial or a run
  runyard status --live            what runs now: its CPU, memory and GPU; --watch goes on
  runyard status --jobs            the last 20 jobs: what each asked for, and what it used
  runyard status 4021 --jobs       one job: its agents, how well it used what it had, its script
  runyard status 4021 --script     its script alone, as it was submitted
  runyard status --jobs --all      every job of yours of the last 7 days, whoever submitted it

Slurm is asked once, for all jobs together, and says why those that wait do so and when they may
start. Where it does not answer, what is shown says how old it is. How much CPU and memory a job
used, Slurm's accounting knows. Where a site has none, the times are there all the same, from
runyard's own ledger. What a running trial uses comes from its agent, which looks at the trial's own
processes on its node: CPU is the mean since the start, in percent of one CPU; memory is the peak.
"""

from __future__ import annotations

import argparse
import sys
import time

from runyard.actions.watching.failures import is_list
from runyard.actions.watching.figures_text import asked_text, usage_text
from runyard.actions.watching.listing import sweep_notes
from runyard.actions.watching.status import MOST_FAILED, Status, submit_held, watch_status
from runyard.actions.watching.troubles import hangs_for, is_left_alone
from runyard.cli.completers import NAMED, complete_named
from runyard.cli.connect import server
from runyard.cli.output import ago, duration, number, print_json, say, show
from runyard.cli.parser import add, count, flag, positive, refuse_options
from runyard.cli.streams import unfiltered
from runyard.cli.watching import job_tables, job_view, live_view
from runyard.cli.watching.best_view import values_text
from runyard.cli.watching.runs import progress
from runyard.cli.watching.sweep_view import STATES
from runyard.client.sweeps import ENDED_STATES, OPEN_STATES
from runyard.errors import UsageError
from runyard.launch.watching import Looked
from runyard.shapes.jobs import Job
from runyard.shapes.runs import Run
from runyard.shapes.sweeps import Sweep, SweepAgent, Trial

_MOST_AGENTS = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, "what", "which one (default: all that is at work)",
        nargs="?", metavar=NAMED, completer=complete_named)  # fmt: skip
    flag(parser, "-f --watch", "show it anew until it is over")
    flag(parser, "--json", "print JSON")
    view = parser.add_mutually_exclusive_group()
    flag(view, "--jobs", "jobs, the newest first, and their use")
    flag(view, "--live", "CPU, memory and GPU of what runs now")
    flag(parser, "--script", "print a job's script, nothing else")
    jobs = parser.add_argument_group("with --jobs")
    add(jobs, "-l --limit", f"at most so many (default {job_tables.LIMIT})", type=count)
    flag(jobs, "--all", "also jobs that runyard did not submit")
    add(jobs, "--days N", f"with --all (default {job_tables.DAYS})", type=positive)


def run(args: argparse.Namespace) -> int:
    if not args.jobs:
        refuse_options(args, "limit all days", "{0} is for --jobs", "runyard status --jobs {0} ...")
    if args.watch and (args.jobs or args.script):
        raise UsageError("a list of jobs is not watched", mend="runyard status --watch")
    if args.all and args.what is not None:
        raise UsageError("--jobs --all takes no name", mend="runyard status JOB --jobs")
    if args.all:
        return job_tables.show_history(args.days or job_tables.DAYS, args.limit, as_json=args.json)
    api = server()
    if args.jobs or args.script:
        return job_tables.show_jobs(
            api, args.what, args.limit, script_only=args.script, as_json=args.json
        )
    if args.live:
        return live_view.show_usage(api, args.what, is_watched=args.watch, as_json=args.json)
    submit_held(api, show)
    for status in watch_status(args.what, api, server, is_watched=args.watch):
        if args.json:
            print_json(status.to_json())
            continue
        if args.watch and sys.stdout.isatty():
            print("\033[2J\033[H", end="", file=unfiltered(sys.stdout))
        _print(status)
    return 0


def _print(shown: Status) -> None:
    if not shown.sweeps and not shown.runs and not shown.jobs:
        say("nothing is at work; `runyard runs`, `runyard runs --sweeps` and `runyard status "
            "--jobs` list what was")  # fmt: skip
    for sweep, failed in shown.sweeps:
        jobs = shown.of(sweep)
        job_view.print_lines(sweep_lines(sweep, failed, jobs))
        is_open = sweep["state"] in OPEN_STATES
        job_view.print_lines(job_view.chain_lines(shown.chains.get(sweep["key"]), is_open=is_open))
        job_view.print_lines(job_view.jobs_lines(jobs, shown.looked, sweep["id"]))
    for run in shown.runs:
        job_view.print_lines(_run_lines(run))
    for job in shown.others:
        job_view.print_lines(_job_lines(job, shown.looked))
        if shown.task is not None and job["array"] is not None:
            job_view.print_lines(job_view.task_lines(job, shown.task, shown.looked))
    job_view.print_lines(job_view.age_lines(shown.looked))
    for agent in shown.unreached:
        where = f"{agent.node}, job {agent.job}" if agent.job else agent.node
        job_view.print_lines([(f"{where}: {agent.why}", "red")])


def _run_lines(run: Run) -> list[job_view.Line]:
    where = f" on {run['host']}" if run["host"] else ""
    head = f"run {run['id']}  {run['name']}  {run['project']}  {run['state']}"
    if run["state"] == "running":
        since = duration(max(0.0, time.time() - (run["started_at"] or run["created_at"])))
        return [(f"{head} for {since}{where}, {run['steps']} steps", None)]
    code = f" (exit code {run['exit_code']})" if run["exit_code"] else ""
    ended = f" {ago(run['ended_at'])}" if run["ended_at"] is not None else ""
    return [(f"{head}{code}{ended}{where}, {run['steps']} steps", None)]


def _job_lines(job: Job, looked: Looked) -> list[job_view.Line]:
    lines = job_view.job_lines(job, looked)
    head = f"{lines[0][0].strip()}  {job['name']}"
    more = [f"agents of sweep {job['sweep_id']}"] if job["sweep_id"] else []
    if request := asked_text(job["asked"]):
        more.append(f"{'each asks' if job['tasks'] > 1 else 'asks'} for {request}")
    return [(head, "bold"), *([(f"    {'; '.join(more)}", None)] if more else []), *lines[1:]]


def sweep_lines(
    sweep: Sweep, failed: list[tuple[Trial, str]], jobs: list[Job] | None = None
) -> list[job_view.Line]:
    """A sweep at a glance, line by line, each with its colour."""
    counts = sweep["counts"]
    named = sweep["id"] if sweep["name"] == sweep["id"] else f"{sweep['id']} {sweep['name']}"
    kind = "list" if is_list(sweep) else sweep["method"]
    head = f"sweep {named}  {sweep['project']}  {kind}  {sweep['state']}  {progress(sweep)}"
    lines: list[job_view.Line] = [(head, "bold")]
    parts = [f"{counts[state]} {state}" for state in STATES if counts[state]]
    left = sweep["eta_seconds"]
    if sweep["state"] in OPEN_STATES and left:
        parts.append(f"about {duration(left)} left")
    lines.append((f"  {', '.join(parts) or 'no trials yet'}", None))
    if sweep["cause"]:
        lines.append((f"  {sweep['cause']}", "red"))
    else:
        lines += [(f"  {note}", None) for note in sweep_notes(sweep)]
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


def _agent_lines(sweep: Sweep) -> list[job_view.Line]:
    agents = sweep["agents"]
    lines: list[job_view.Line] = []
    for agent in agents[:_MOST_AGENTS]:
        at_work = f"{agent['running']} of {agent['slots']} slots at work"
        lines.append((f"  agent {agent['key']}  {at_work}  ({_where(agent)})", None))
        used = usage_text(agent["usage"])
        lines += [(f"    {text}", None) for text in (agent["packing"], used) if text]
        lines += _over_lines(agent)
    rest = agents[_MOST_AGENTS:]
    if rest:
        running = sum(agent["running"] for agent in rest)
        slots = sum(agent["slots"] for agent in rest)
        lines.append((f"  ... and {len(rest)} more agents: {running} of {slots} slots at work",
                      None))  # fmt: skip
    return lines


def _over_lines(agent: SweepAgent) -> list[job_view.Line]:
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
