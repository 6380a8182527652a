"""A report in words and tables, the same for every form that it is written in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runyard.reading.units import duration, memory_text, number
from runyard.report.findings import Group, Outcome, Report

MOST_BEST = 10
_MOST_GROUPS = 3
_MOST_METRICS = 6
_MOST_CHOICES = 6


@dataclass(frozen=True)
class Table:
    """`name` is for files and links; the columns of `numbers` stand to the right."""

    name: str
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Section:
    """One question and its answer: words, points of a list, tables, and the names of plots."""

    title: str
    words: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    plots: tuple[str, ...] = ()


def sections(report: Report) -> list[Section]:
    found = [_asked_and_used(report), _savings(report), _failures(report)]
    outcome = report.outcome
    if outcome is not None:
        found += [_best(outcome), _over_seeds(outcome), _parameters(outcome), _convergence(outcome)]
    if report.kind == "project":
        found.append(_sweeps(report))
    if report.kind == "job":
        found.append(_trials(report))
    return [one for one in found if one is not None]


def _asked_and_used(report: Report) -> Section:
    if not report.groups:
        return Section("Asked and used", ("Nothing was measured yet.",))
    tables = [
        _resources(group, place if len(report.groups) > 1 else None)
        for place, group in enumerate(report.groups[:_MOST_GROUPS], 1)
    ]
    hours = _hours_table(report)
    words = []
    if len(report.groups) > _MOST_GROUPS:
        words.append(f"And {len(report.groups) - _MOST_GROUPS} more sizes of jobs.")
    return Section(
        "Asked and used", tuple(words), (), (*tables, *((hours,) if hours else ())),
        ("resources", "hours"),
    )  # fmt: skip


def _resources(group: Group, place: int | None) -> Table:
    rows = [
        ("time", _maybe(duration, group.most("limit")), _maybe(duration, group.most("longest")),
         share(group.most("longest"), group.most("limit"))),
        ("CPU", _cores(group), _busy_cores(group),
         share(group.total("cpu_used"), group.total("cpu_held"))),
        ("memory", _maybe(_memory, group.most("memory_asked")),
         _maybe(_memory, group.most("memory_peak")),
         share(group.most("memory_peak"), group.most("memory_asked"))),
    ]  # fmt: skip
    if group.total("gpu_held") or group.most("vram_peak"):
        busy = share(group.total("gpu_used"), group.total("gpu_held"))
        rows.append(("GPU", _gpus(group.asked), "-" if busy == "-" else f"{busy} busy", busy))
        rows.append(
            ("VRAM", _maybe(_memory, group.most("vram_total")),
             _maybe(_memory, group.most("vram_peak")),
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
    each = f", each of {tasks} tasks" if tasks > 1 else ""
    return f"{word} {names}{more}{each}"


def _cores(group: Group) -> str:
    asked = group.asked.get("cpus")
    if not asked:
        return "-"
    nodes = group.asked.get("nodes") or 1
    where = f" on {nodes} nodes" if nodes > 1 else ""
    return f"{asked} core{'s' if asked != 1 else ''}{where}"


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
                (name, *(_maybe(hours, one) for one in
                         (held, used, report.total(f"{kind}_idle"), lost, wasted)),
                 share(wasted, held))
            )  # fmt: skip
    if not rows:
        return None
    return Table(
        "hours", "all jobs", ("", "held", "used", "idle", "failed", "wasted", "share"),
        tuple(rows), frozenset(range(1, 7)),
    )  # fmt: skip


def _savings(report: Report) -> Section | None:
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


def _failures(report: Report) -> Section:
    if not report.failures:
        return Section("Failures", ("Nothing failed, and nothing was cut off.",))
    rows = tuple(
        (
            one.words,
            str(one.attempts),
            str(one.trials),
            "go on" if one.goes_on and not one.failed else str(one.failed),
            duration(one.seconds),
            one.example,
        )
        for one in report.failures
    )
    head = ("cause", "attempts", "trials", "failed", "time", "for example")
    return Section(
        "Failures", (), (), (Table("failures", "by cause", head, rows, frozenset({1, 2, 3, 4})),),
        ("failures",),
    )  # fmt: skip


def _best(outcome: Outcome) -> Section | None:
    if not outcome.aims:
        return None
    names = ", ".join(
        f"{aim.name} ({'the more the better' if aim.maximize else 'the less the better'})"
        for aim in outcome.aims
    )
    if not outcome.settings:
        return Section("Best trials", (f"No trial has a value of {names} yet.",))
    shown = outcome.settings[:MOST_BEST]
    names_of = list(dict.fromkeys(name for one in shown for name in one.values))
    rows = tuple(
        (
            str(place),
            one.trials[0]["id"],
            *(measure(mean, away) for mean, away in zip(one.means, one.deviations, strict=True)),
            *([str(len(one.trials))] if _has_seeds(outcome) else []),
            *(number(one.values[name]) if name in one.values else "-" for name in names_of),
        )
        for place, one in enumerate(shown, 1)
    )
    head = (
        "",
        "run",
        *(aim.name for aim in outcome.aims),
        *(["seeds"] if _has_seeds(outcome) else []),
    )
    right = frozenset(range(len(head))) - {1}
    what = "Pareto front" if outcome.is_front else "best trials"
    words = [f"By {names}."]
    if _has_seeds(outcome):
        words.append("Mean ± standard deviation over seeds.")
    if len(outcome.settings) > len(shown):
        words.append(f"{len(shown)} of {len(outcome.settings)}.")
    table = Table("best", what, (*head, *names_of), rows, right)
    return Section(what.capitalize() if outcome.is_front else "Best trials", (" ".join(words),), (),
                   (table,), ("front", "seeds"))  # fmt: skip


def _has_seeds(outcome: Outcome) -> bool:
    return any(len(one.trials) > 1 for one in outcome.settings)


def _over_seeds(outcome: Outcome) -> Section | None:
    many = [one for one in outcome.repeats if one.samples]
    if not many:
        return None
    metrics = list(dict.fromkeys(name for one in many for name in one.samples))[:_MOST_METRICS]
    rows = tuple(
        (
            one.name,
            str(one.runs),
            *(
                measure(one.samples[name].mean, one.samples[name].deviation)
                if name in one.samples
                else "-"
                for name in metrics
            ),
        )
        for one in many[:MOST_BEST]
    )
    table = Table("over-seeds", "over seeds", ("setting", "runs", *metrics), rows,
                  frozenset(range(1, 2 + len(metrics))))  # fmt: skip
    return Section("Over seeds", ("Mean ± standard deviation over the runs of each setting.",), (),
                   (table,))  # fmt: skip


def _parameters(outcome: Outcome) -> Section | None:
    if outcome.columns is None or not outcome.columns["parameters"]:
        return None
    told, said = outcome.importance, "importance needs a metric"
    shares: dict[str, str] = {}
    if told is not None and told["explained"] is not None:
        for one in told["parameters"]:
            sure = "" if one["is_sure"] else " ?"
            shares[one["name"]] = f"{100 * one['share']:.0f} %{sure}"
        said = (
            f"The parameters explain {100 * told['explained']:.0f} % of how {told['metric']} "
            f"differs over {told['trials']} trials. ? is no more than chance would give."
        )
    elif told is not None:
        said = (
            f"Importance needs {told['needed']} trials with results; there are {told['trials']}."
            if told["trials"] < told["needed"]
            else "All trials came to the same: nothing tells the parameters apart."
        )
    best = outcome.settings[0].values if outcome.settings else {}
    order = sorted(
        outcome.columns["parameters"],
        key=lambda one: -float(shares.get(one["name"], "-1 %").partition(" ")[0]),
    )
    rows = tuple(
        (
            one["name"],
            _searched(one),
            shares.get(one["name"], "-"),
            number(best[one["name"]]) if one["name"] in best else "-",
        )
        for one in order
    )
    head = ("parameter", "searched", "importance", "best")
    table = Table("parameters", "parameters", head, rows, frozenset({2, 3}))
    return Section("Parameters", (said,), (), (table,), ("importance", "slices"))


def _searched(parameter: Mapping[str, Any]) -> str:
    """Where it was looked for; a few choices are named."""
    choices = [number(tick["value"]) for tick in parameter["ticks"]]
    if parameter["categories"] and len(choices) == parameter["categories"] <= _MOST_CHOICES:
        return ", ".join(choices)
    said: str = parameter["said"]
    return said


def _convergence(outcome: Outcome) -> Section | None:
    if outcome.columns is None or not outcome.columns["convergence"] or not outcome.aims:
        return None
    steps = outcome.columns["convergence"]
    counted = sum(
        one["value"] is not None and one["state"] in ("finished", "stopped")
        for one in outcome.trials
    )
    last, first = steps[-1], steps[0]
    words = (
        f"{outcome.aims[0].name} went from {number(first['value'])} to {number(last['value'])} in "
        f"{len(steps) - 1} improvement{'s' if len(steps) != 2 else ''}; the best came as number "
        f"{last['order']} of {counted} with a result."
    )
    rest = counted - last["order"]
    if rest >= 10:
        words += f" The last {rest} brought nothing better."
    return Section("Convergence", (words,), (), (), ("convergence",))


def _sweeps(report: Report) -> Section:
    if not report.outcomes and not report.alone:
        return Section("Sweeps", ("This project has no sweeps and no runs yet.",))
    rows = tuple(
        (
            one.sweep["name"] if one.sweep["name"] != one.sweep["id"] else one.sweep["id"],
            one.sweep["state"],
            str(one.sweep["trials"]),
            str(one.counts.get("failed", 0)),
            duration(sum(trial["seconds"] for trial in one.trials)),
            _best_words(one),
        )
        for one in report.outcomes
    )
    head = ("sweep", "state", "trials", "failed", "time", "best")
    tables = (Table("sweeps", "sweeps", head, rows, frozenset({2, 3, 4})),) if rows else ()
    words = []
    if report.alone:
        states = ", ".join(f"{count} {state}" for state, count in report.alone["states"].items())
        words.append(
            f"Besides, {report.alone['runs']} runs that are no trial of a sweep ({states}), "
            f"{duration(report.alone['seconds'])} in all."
        )
    return Section("Sweeps", tuple(words), (), tables)


def _best_words(outcome: Outcome) -> str:
    best = outcome.sweep["best"]
    if best is None or best["value"] is None:
        return "-"
    return f"{outcome.sweep['metric']} {number(best['value'])}"


def _trials(report: Report) -> Section | None:
    if not report.tries:
        return Section("Trials", ("No trial of a sweep ran in it.",))
    rows = tuple(
        (
            one["name"],
            one["state"],
            duration(one["seconds"]),
            _maybe(duration, one["cpu_seconds"]),
            _maybe(_memory, one["memory_peak"]),
            _maybe(_memory, one["vram_peak"]),
        )
        for one in report.tries[: 3 * MOST_BEST]
    )
    head = ("trial", "state", "time", "CPU", "memory", "VRAM")
    words = (f"{len(rows)} of {len(report.tries)}.",) if len(report.tries) > len(rows) else ()
    return Section("Trials", words, (),
                   (Table("trials", "trials", head, rows, frozenset({2, 3, 4, 5})),))  # fmt: skip


def in_short(report: Report) -> list[tuple[str, str]]:
    """The figures that are read first, each with its name."""
    found: list[tuple[str, str]] = []
    outcome = report.outcome
    if outcome is not None and outcome.settings and outcome.aims:
        best = outcome.settings[0]
        found.append((f"best {outcome.aims[0].name}", measure(best.means[0], best.deviations[0])))
    if outcome is not None:
        ended = sum(outcome.counts.get(state, 0) for state in ("finished", "stopped"))
        found.append(("trials finished", f"{ended} of {outcome.sweep['trials']}"))
    for kind, name in (("gpu", "GPU-hours"), ("cpu", "core-hours")):
        held, wasted = report.total(f"{kind}_held"), report.wasted(kind)
        if held and wasted is not None:
            found.append((f"{name} wasted", f"{hours(wasted)} of {hours(held)}"))
        elif held:
            found.append((f"{name} held", hours(held)))
    used = report.total("cpu_used")
    if used is not None and not report.total("cpu_held"):
        found.append(("core-hours used", hours(used)))
    failed = sum(one.failed for one in report.failures)
    if failed:
        found.append(("trials failed", str(failed)))
    return found


def measure(mean: float, deviation: float | None) -> str:
    """A deviation of a few seeds has two digits that mean something."""
    return number(mean) if deviation is None else f"{number(mean)} ± {deviation:.2g}"


def hours(seconds: float) -> str:
    """In hours, as short as they can be said."""
    value = seconds / 3600
    if 0 < value < 0.005:
        return "<0.01"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def share(part: float | None, whole: float | None) -> str:
    return "-" if part is None or not whole else f"{100 * part / whole:.0f} %"


def _memory(count: float) -> str:
    return memory_text(int(count))


def _maybe(say: Any, value: float | None) -> str:
    return "-" if value is None else str(say(value))


def table_of(found: Sequence[Section], name: str) -> Table | None:
    return next((table for one in found for table in one.tables if table.name == name), None)
