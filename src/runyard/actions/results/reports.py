"""What a report is of: found by its name, its jobs looked after, its trials fetched."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runyard.actions import naming
from runyard.actions.results.best import best_of
from runyard.actions.watching.failures import is_list
from runyard.actions.watching.listing import sweep_notes
from runyard.client.api import Api
from runyard.client.sweeps import OPEN_STATES
from runyard.errors import NotFoundError, RunyardError, UsageError
from runyard.launch.watching import account_for, look
from runyard.reading.units import ago, duration
from runyard.report.advice import Margins
from runyard.report.efficiency import is_in
from runyard.report.failures import failures
from runyard.report.findings import (
    Group,
    Outcome,
    Report,
    failures_of,
    group_outside,
    groups_of,
    tries_of,
)
from runyard.report.repeats import repeats_of
from runyard.schedulers.states import states_text
from runyard.shapes.jobs import Job
from runyard.shapes.projects import Project
from runyard.shapes.sweeps import Sweep, Work


def report_on(api: Api, words: str | None) -> Report | None:
    """Of the sweep, the job or the project that is meant; without words, of the newest sweep.

    None where there is no sweep yet.
    """
    if words is None:
        newest = api.sweeps.sweeps(limit=1)
        return report_on_sweep(api, newest[0]) if newest else None
    kind, _, rest = words.partition(":")
    if kind == "project" and rest:
        return report_on_project(api, rest)
    try:
        named = naming.find(api, words)
    except NotFoundError as error:
        if _projects(api, words):
            return report_on_project(api, words)
        error.mend = (
            "`runyard runs --sweeps` and `runyard status --jobs` list what there is; --project "
            "NAME is a project's"
        )
        raise
    sweep = named.sweep
    if sweep is not None and words not in (sweep["id"], sweep["name"]) and _projects(api, words):
        return report_on_project(api, words)  # Its whole name, and but a part of the sweep's.
    if sweep is not None:
        return report_on_sweep(api, sweep)
    if named.run is not None:
        run = named.run
        of = f"`runyard report {api.sweeps.sweep(run['trial']['sweep'])['id']}` is its sweep's; " \
            if run["trial"] else ""  # fmt: skip
        raise UsageError(
            f"{run['name']} ({run['id']}) is a run: reports are of sweeps, jobs and projects",
            mend=f"{of}`runyard show {run['id']}` tells what it used",
        )
    return report_on_job(api, named)


def report_on_sweep(api: Api, sweep: Sweep) -> Report:
    now = time.time()
    work = api.sweeps.work(sweep["key"])
    jobs, notes = _looked(api, api.jobs.jobs(sweep=sweep["key"]))
    outcome = _outcome(api, sweep)
    works = {sweep["key"]: work}
    is_open = sweep["state"] in OPEN_STATES
    if is_open:
        ended = sum(outcome.counts.get(state, 0) for state in ("finished", "failed", "stopped"))
        of = f" of {sweep['expected']}" if sweep["expected"] else ""
        notes.insert(0, f"Still {sweep['state']}: {ended}{of} trials have ended. All figures are "
                     "those so far.")  # fmt: skip
    if sweep["cause"]:
        notes.append(" ".join(sweep["cause"].split()))
    counts = ", ".join(f"{count} {state}" for state, count in outcome.counts.items())
    return Report(
        kind="sweep",
        title=sweep["name"],
        about=[
            f"sweep {sweep['id']} in {sweep['entity']}/{sweep['project']}",
            f"{sweep['trials']} trials ({counts})" if counts else "no trials yet",
            f"{sweep['method']} search" if not is_list(sweep) else "a list",
            _lasted(sweep["started_at"], sweep["ended_at"]),
            *sweep_notes(sweep),
        ],
        groups=_groups(jobs, works, now),
        failures=failures(outcome.trials, work["attempts"], work["causes"]),
        outcomes=[outcome],
        tries=tries_of(outcome, work),
        is_open=is_open,
        notes=notes,
        made_at=now,
    )


def report_on_job(api: Api, named: naming.Named) -> Report:
    now = time.time()
    if named.job is not None:
        listed: Job = named.job
    else:
        from runyard.actions.watching.foreign_jobs import foreign_job

        listed = foreign_job(named.number or "")
    [job], notes = _looked(api, [listed])
    if named.task is not None:
        notes.append(f"Of the whole job {job['job_id']}, of which {named.task} is one task.")
    is_open = job["ended_at"] is None
    if is_open:
        notes.insert(0, f"Not over yet ({states_text(job['states']) or 'submitted'}): all figures "
                     "are those so far.")  # fmt: skip
    work: Work = {"agents": [], "attempts": [], "causes": {}}
    tries: list[dict[str, Any]] = []
    trials = []
    if job["sweep"] is not None:
        whole = api.sweeps.work(job["sweep"])
        agents = [agent for agent in whole["agents"] if is_in(job, agent["job"])]
        keys = {agent["key"] for agent in agents}
        ran = [attempt for attempt in whole["attempts"] if attempt["agent"] in keys]
        work = {**whole, "agents": agents, "attempts": ran}
        numbers = {attempt["trial"] for attempt in ran}
        outcome = Outcome(api.sweeps.sweep(job["sweep"]), api.sweeps.trials(job["sweep"]))
        trials = [trial for trial in outcome.trials if trial["number"] in numbers]
        tries = tries_of(Outcome(outcome.sweep, trials), work)
    return Report(
        kind="job",
        title=f"job {job['job_id']} {job['name']}".rstrip(),
        about=[
            f"{job['tasks']} tasks: {states_text(job['states'])}"
            if job["tasks"] > 1
            else states_text(job["states"]) or "submitted",
            *([f"sweep {job['sweep_id']}"] if job["sweep_id"] else []),
            f"on {job['cluster']}" if job["cluster"] else "on Slurm",
            _lasted(job["started_at"], job["ended_at"]),
        ],
        groups=groups_of([job], {job["sweep"] or 0: work}, now=now, margins=_margins()),
        failures=failures(trials, work["attempts"], work["causes"]),
        tries=tries,
        is_open=is_open,
        notes=notes,
        made_at=now,
    )


def report_on_project(api: Api, words: str) -> Report:
    projects = _projects(api, words)
    if not projects:
        raise NotFoundError(
            f"there is no project {words!r}",
            mend="projects: "
            + (", ".join(project["name"] for project in api.projects()) or "none yet"),
        )
    if len(projects) > 1:
        names = ", ".join(f"{project['entity']}/{project['name']}" for project in projects)
        raise NotFoundError(f"{words!r} is more than one project: {names}", mend="name one of them")
    [project] = projects
    place, now = f"{project['entity']}/{project['name']}", time.time()
    sweeps = api.sweeps.sweeps(project=place)
    works = {sweep["key"]: api.sweeps.work(sweep["key"]) for sweep in sweeps}
    jobs, notes = _looked(api, [job for job in api.jobs.jobs() if job["sweep"] in works])
    outcomes = [Outcome(sweep, api.sweeps.trials(sweep["key"])) for sweep in sweeps]
    running = sum(sweep["state"] in OPEN_STATES for sweep in sweeps)
    if running:
        notes.insert(0, f"{running} of its sweeps still run: all figures are those so far.")
    return Report(
        kind="project",
        title=project["name"],
        about=[
            f"project {place}",
            f"{len(sweeps)} sweeps, {project['runs']} runs",
            f"last active {ago(project['last_at'])}",
        ],
        groups=_groups(jobs, works, now),
        failures=failures_of(outcomes, works),
        outcomes=outcomes,
        tries=[
            row for outcome in outcomes for row in tries_of(outcome, works[outcome.sweep["key"]])
        ],
        is_open=bool(running),
        notes=notes,
        made_at=now,
        alone=_alone(api, place, now),
    )


def _projects(api: Api, words: str) -> list[Project]:
    names = ("{name}", "{entity}/{name}")
    return [
        project for project in api.projects() if words in (name.format(**project) for name in names)
    ]


def _looked(api: Api, jobs: Sequence[Job]) -> tuple[list[Job], list[str]]:
    """Jobs as they are now, with what accounting knows of them; and what is to be said of that."""
    looked = look(api.jobs, jobs)
    known, why = account_for(api.jobs, looked.jobs)
    notes = []
    if looked.trouble is not None:
        notes.append(f"{looked.trouble}: jobs are as they were when Slurm was last asked.")
    if why is not None:
        notes.append(f"{why}: CPU and memory are what agents measured of the programs.")
    return known, notes


def _groups(jobs: Sequence[Job], works: Mapping[int, Work], now: float) -> list[Group]:
    margins = _margins()
    outside = group_outside(jobs, works, now=now, margins=margins)
    groups = groups_of(jobs, works, now=now, margins=margins)
    return [*groups, *([outside] if outside else [])]


def _margins() -> Margins:
    """Those of the project that one stands in, where it has any that can be read."""
    from runyard.config.project_file import read_project

    try:
        gauge = read_project(Path.cwd()).gauge
    except RunyardError:
        return Margins()  # What it cost can be told all the same.
    return Margins(gauge.memory_margin, gauge.time_margin, gauge.gpu_memory_margin)


def _outcome(api: Api, sweep: Sweep) -> Outcome:
    trials = api.sweeps.trials(sweep["key"])
    settings, aims = best_of(api, sweep)
    columns = api.sweeps.columns(sweep["key"])
    if aims:
        importance = api.sweeps.importance(sweep["key"])
        return Outcome(sweep, trials, aims, settings, columns, importance)
    runs = api.runs(sweep=sweep["key"])
    return Outcome(sweep, trials, columns=columns, repeats=repeats_of(trials, runs))


def _alone(api: Api, place: str, now: float) -> dict[str, Any] | None:
    runs = api.runs(project=place, alone=True)
    if not runs:
        return None
    states: dict[str, int] = {}
    for run in runs:
        states[run["state"]] = states.get(run["state"], 0) + 1
    seconds = sum((run["ended_at"] or now) - run["started_at"] for run in runs
                  if run["started_at"] is not None)  # fmt: skip
    return {"runs": len(runs), "states": states, "seconds": seconds}


def _lasted(begin: float | None, end: float | None) -> str:
    if begin is None:
        return "not begun"
    if end is None:
        return f"began {ago(begin)}"
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(begin))
    return f"began {when}, took {duration(end - begin)}"
