"""What it cost: asked and used, what to ask for next time, what failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runyard.reading.units import duration
from runyard.report.findings import Group, Report
from runyard.report.tables import Section, Table, hours, maybe, memory, share

_MOST_GROUPS = 3
_MOST_TRIALS = 30


def asked_and_used(report: Report) -> Section:
    if not report.groups:
        return Section("Asked and used", ("Nothing was measured yet.",))
    tables = [
        _resources(group, place if len(report.groups) > 1 else None)
        for place, group in enumerate(report.groups[:_MOST_GROUPS], 1)
    ]
    totals = _hours_table(report)
    words = []
    if len(report.groups) > _MOST_GROUPS:
        words.append(f"And {len(report.groups) - _MOST_GROUPS} more sizes of jobs.")
    return Section(
        "Asked and used", tuple(words), (), (*tables, *((totals,) if totals else ())),
        ("resources", "hours"),
    )  # fmt: skip


def _resources(group: Group, place: int | None) -> Table:
    rows = [
        ("time", maybe(duration, group.most("limit")), maybe(duration, group.most("longest")),
         share(group.most("longest"), group.most("limit"))),
        ("CPU", _cores(group), _busy_cores(group),
         share(group.total("cpu_used"), group.total("cpu_held"))),
        ("memory", maybe(memory, group.most("memory_asked")),
         maybe(memory, group.most("memory_peak")),
         share(group.most("memory_peak"), group.most("memory_asked"))),
    ]  # fmt: skip
    if group.total("gpu_held") or group.most("vram_peak"):
        busy = share(group.total("gpu_used"), group.total("gpu_held"))
        rows.append(("GPU", _gpus(group.asked), "-" if busy == "-" else f"{busy} busy", busy))
        rows.append(
            ("VRAM", maybe(memory, group.most("vram_total")),
             maybe(memory, group.most("vram_peak")),
             share(group.most("vram_peak"), group.most("vram_total")))
        )  # fmt: skip
    return Table(
        "resources" if place is None else f"resources-{place}", _whose(group),
        ("resource", "asked", "used", "share"), tuple(rows), frozenset({3}),
    )  # fmt: skip


def _whose(group: Group) -> str:
    if not group.jobs:
        return "outside of jobs: what one program used"
    tasks = int(group.total("tasks") or 0)
    names = ", ".join(job["job_id"] for job in group.jobs[:4])
    more = f" and {len(group.jobs) - 4} more" if len(group.jobs) > 4 else ""
    word = "job" if len(group.jobs) == 1 else "jobs"
    each = f", each of {'its' if len(group.jobs) == 1 else 'their'} {tasks} tasks"
    each = each if tasks > len(group.jobs) else ""
    return f"{word} {names}{more}{each}"


def _cores(group: Group) -> str:
    requested = group.asked.get("cpus")
    if not requested:
        return "-"
    nodes = group.asked.get("nodes") or 1
    where = f" on {nodes} nodes" if nodes > 1 else ""
    return f"{requested} core{'s' if requested != 1 else ''}{where}"


def _busy_cores(group: Group) -> str:
    used, seconds = group.total("cpu_used"), group.total("seconds")
    return "-" if used is None or not seconds else f"{used / seconds:.2g} busy"


def _gpus(asked: Mapping[str, Any]) -> str:
    if not asked.get("gpus"):
        return "-"
    kind = f" {asked['gpu_type']}" if asked.get("gpu_type") else ""
    return f"{asked['gpus']}{kind}"


def _hours_table(report: Report) -> Table | None:
    rows = []
    for kind, name in (("cpu", "core-hours"), ("gpu", "GPU-hours")):
        held = report.total(f"{kind}_held")
        if held:
            used, lost = report.total(f"{kind}_used"), report.total(f"{kind}_lost")
            wasted = report.wasted(kind)
            rows.append(
                (name, *(maybe(hours, seconds) for seconds in
                         (held, used, report.total(f"{kind}_idle"), lost, wasted)),
                 share(wasted, held))
            )  # fmt: skip
    if not rows:
        return None
    return Table(
        "hours", "all jobs", ("", "held", "used", "idle", "failed", "wasted", "share"),
        tuple(rows), frozenset(range(1, 7)),
    )  # fmt: skip


def savings(report: Report) -> Section | None:
    lines = []
    for group in report.counted:
        for change in group.changes:
            saved = [
                f"{hours(seconds)} {name}"
                for seconds, name in
                ((change.core_seconds, "core-hours"), (change.gpu_seconds, "GPU-hours"))
                if seconds >= 36
            ]  # fmt: skip
            most = "up to " if change.option == "--per-gpu" else ""
            ending = f"; would have saved {most}{' and '.join(saved)}" if saved else ""
            lines.append(change.words + ending)
    if lines:
        is_asked = any(group.jobs for group in report.groups)
        title = "What to ask for next time" if is_asked else "What to ask for on a cluster"
        return Section(title, (), tuple(dict.fromkeys(lines)))
    if report.is_open or not any(group.jobs for group in report.groups):
        return None
    return Section("What to ask for next time", ("What was asked for fits what was used.",))


def failures(report: Report) -> Section | None:
    if report.kind == "job" and not report.tries:
        return None  # A server or a shell: how it ended stands at the top.
    if not report.failures:
        return Section("Failures", ("Nothing failed, and nothing was cut off.",))
    rows = tuple(
        (
            failure.words,
            str(failure.attempts),
            str(failure.trials),
            "go on" if failure.goes_on and not failure.failed else str(failure.failed),
            duration(failure.seconds),
            failure.example,
        )
        for failure in report.failures
    )
    head = ("cause", "attempts", "trials", "failed", "time", "for example")
    return Section(
        "Failures", (), (), (Table("failures", "by cause", head, rows, frozenset({1, 2, 3, 4})),),
        ("failures",),
    )  # fmt: skip


def trials(report: Report) -> Section | None:
    if not report.tries:
        return Section("Trials", ("No trial of a sweep ran in it.",))
    rows = tuple(
        (
            trial["name"],
            trial["state"],
            duration(trial["seconds"]),
            maybe(duration, trial["cpu_seconds"]),
            maybe(memory, trial["memory_peak"]),
            maybe(memory, trial["vram_peak"]),
        )
        for trial in report.tries[:_MOST_TRIALS]
    )
    head = ("trial", "state", "time", "CPU", "memory", "VRAM")
    words = (f"{len(rows)} of {len(report.tries)}.",) if len(report.tries) > len(rows) else ()
    return Section("Trials", words, (),
                   (Table("trials", "trials", head, rows, frozenset({2, 3, 4, 5})),))  # fmt: skip
