"""What a report is of: found by its name, its jobs looked after, its trials fetched."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runyard.actions import naming
from runyard.actions.results.best import best_of
from runyard.actions.watching.failures import is_list
from runyard.client.api import Api, Project
from runyard.client.jobs import Job
from runyard.client.sweeps import OPEN_STATES, Sweep, Work
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


def report_on(api: Api, words: str) -> Report:
    """Of the sweep, the job or the project that is meant."""
    kind, _, rest = words.partition(":")
    if kind == "project" and rest:
        return report_on_project(api, rest)
    try:
        found = naming.find(api, words)
    except NotFoundError as error:
        if _projects(api, words):
            return report_on_project(api, words)
        error.mend = (
            "`runyard runs --sweeps` and `runyard status --jobs` list what there is; --project "
            "NAME is a project's"
        )
        raise
    sweep = found.sweep
    if sweep is not None and words not in (sweep["id"], sweep["name"]) and _projects(api, words):
        return report_on_project(api, words)  # Its whole name, and but a part of the sweep's.
    if sweep is not None:
        return report_on_sweep(api, sweep)
    if found.run is not None:
        run = found.run
        of = f"`runyard report {api.sweeps.sweep(run['trial']['sweep'])['id']}` is its sweep's; " \
            if run["trial"] else ""  # fmt: skip
        raise UsageError(
            f"{run['name']} ({run['id']}) is a run: reports are of sweeps, jobs and projects",
            mend=f"{of}`runyard show {run['id']}` tells what it used",
        )
    return report_on_job(api, found)


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
        ],
        groups=_groups(jobs, works, now),
        failures=failures(outcome.trials, work["attempts"], work["causes"]),
        outcomes=[outcome],
        tries=tries_of(outcome, work),
        is_open=is_open,
        notes=notes,
        made_at=now,
    )


def report_on_job(api: Api, found: naming.Named) -> Report:
    now = time.time()
    if found.job is not None:
        listed: Job = found.job
    else:
        from runyard.actions.watching.foreign_jobs import foreign_job

        listed = foreign_job(found.number or "")
    [job], notes = _looked(api, [listed])
    if found.task is not None:
        notes.append(f"Of the whole job {job['job_id']}, of which {found.task} is one task.")
    is_open = job["ended_at"] is None
    if is_open:
        notes.insert(0, f"Not over yet ({states_text(job['states']) or 'submitted'}): all figures "
                     "are those so far.")  # fmt: skip
    told: Work = {"agents": [], "attempts": [], "causes": {}}
    tries: list[dict[str, Any]] = []
    trials = []
    if job["sweep"] is not None:
        whole = api.sweeps.work(job["sweep"])
        agents = [one for one in whole["agents"] if is_in(job, one["job"])]
        keys = {one["key"] for one in agents}
        ran = [one for one in whole["attempts"] if one["agent"] in keys]
        told = {**whole, "agents": agents, "attempts": ran}
        numbers = {one["trial"] for one in ran}
        outcome = Outcome(api.sweeps.sweep(job["sweep"]), api.sweeps.trials(job["sweep"]))
        trials = [one for one in outcome.trials if one["number"] in numbers]
        tries = tries_of(Outcome(outcome.sweep, trials), told)
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
        groups=groups_of([job], {job["sweep"] or 0: told}, now=now, margins=_margins()),
        failures=failures(trials, told["attempts"], told["causes"]),
        tries=tries,
        is_open=is_open,
        notes=notes,
        made_at=now,
    )


def report_on_project(api: Api, words: str) -> Report:
    found = _projects(api, words)
    if not found:
        raise NotFoundError(
            f"there is no project {words!r}",
            mend="projects: " + (", ".join(one["name"] for one in api.projects()) or "none yet"),
        )
    if len(found) > 1:
        names = ", ".join(f"{one['entity']}/{one['name']}" for one in found)
        raise NotFoundError(f"{words!r} is more than one project: {names}", mend="name one of them")
    [project] = found
    place, now = f"{project['entity']}/{project['name']}", time.time()
    sweeps = api.sweeps.sweeps(project=place)
    works = {one["key"]: api.sweeps.work(one["key"]) for one in sweeps}
    jobs, notes = _looked(api, [job for job in api.jobs.jobs() if job["sweep"] in works])
    outcomes = [Outcome(one, api.sweeps.trials(one["key"])) for one in sweeps]
    running = sum(one["state"] in OPEN_STATES for one in sweeps)
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
        tries=[row for one in outcomes for row in tries_of(one, works[one.sweep["key"]])],
        is_open=bool(running),
        notes=notes,
        made_at=now,
        alone=_alone(api, place, now),
    )


def _projects(api: Api, words: str) -> list[Project]:
    names = ("{name}", "{entity}/{name}")
    return [one for one in api.projects() if words in (name.format(**one) for name in names)]


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
    found = groups_of(jobs, works, now=now, margins=margins)
    return [*found, *([outside] if outside else [])]


def _margins() -> Margins:
    """Those of the project that one stands in, where it has any that can be read."""
    from runyard.config.project_file import read_project

    try:
        told = read_project(Path.cwd()).gauge
    except RunyardError:
        return Margins()  # What it cost can be told all the same.
    return Margins(told.memory_margin, told.time_margin, told.gpu_memory_margin)


def _outcome(api: Api, sweep: Sweep) -> Outcome:
    trials = api.sweeps.trials(sweep["key"])
    settings, aims = best_of(api, sweep)
    columns = api.sweeps.columns(sweep["key"])
    if aims:
        told = api.sweeps.importance(sweep["key"])
        return Outcome(sweep, trials, aims, settings, columns, told)
    runs = api.runs(sweep=sweep["key"])
    return Outcome(sweep, trials, columns=columns, repeats=repeats_of(trials, runs))


def _alone(api: Api, place: str, now: float) -> dict[str, Any] | None:
    runs = api.runs(project=place, alone=True)
    if not runs:
        return None
    states: dict[str, int] = {}
    for one in runs:
        states[one["state"]] = states.get(one["state"], 0) + 1
    seconds = sum((one["ended_at"] or now) - one["started_at"] for one in runs
                  if one["started_at"] is not None)  # fmt: skip
    return {"runs": len(runs), "states": states, "seconds": seconds}


def _lasted(begin: float | None, end: float | None) -> str:
    if begin is None:
        return "not begun"
    if end is None:
        return f"began {ago(begin)}"
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(begin))
    return f"began {when}, took {duration(end - begin)}"
