"""What came of it: the best trials, over seeds, which parameters matter, how the search went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runyard.reading.units import duration, number
from runyard.report.findings import Outcome, Report
from runyard.report.tables import Section, Table, measure
from runyard.vocabulary import RESULT_STATES

MOST_BEST = 10
_MOST_METRICS = 6
_MOST_CHOICES = 6


def best(outcome: Outcome) -> Section | None:
    if not outcome.aims:
        return None
    names = ", ".join(
        f"{aim.name} ({'the more the better' if aim.maximize else 'the less the better'})"
        for aim in outcome.aims
    )
    if not outcome.settings:
        return Section("Best trials", (f"No trial has a value of {names} yet.",))
    shown = outcome.settings[:MOST_BEST]
    names_of = list(dict.fromkeys(name for setting in shown for name in setting.values))
    rows = tuple(
        (
            str(place),
            setting.trials[0]["id"],
            *(
                measure(mean, away)
                for mean, away in zip(setting.means, setting.deviations, strict=True)
            ),
            *([str(len(setting.trials))] if _has_seeds(outcome) else []),
            *(number(setting.values[name]) if name in setting.values else "-" for name in names_of),
        )
        for place, setting in enumerate(shown, 1)
    )
    head = (
        "",
        "run",
        *(f"{aim.name} (best)" for aim in outcome.aims),
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
    return any(len(setting.trials) > 1 for setting in outcome.settings)


def over_seeds(outcome: Outcome) -> Section | None:
    many = [repeat for repeat in outcome.repeats if repeat.samples]
    if not many:
        return None
    metrics = list(dict.fromkeys(name for repeat in many for name in repeat.samples))[
        :_MOST_METRICS
    ]
    rows = tuple(
        (
            repeat.name,
            str(repeat.runs),
            *(
                measure(repeat.samples[name].mean, repeat.samples[name].deviation)
                if name in repeat.samples
                else "-"
                for name in metrics
            ),
        )
        for repeat in many[:MOST_BEST]
    )
    table = Table("over-seeds", "over seeds", ("setting", "runs", *metrics), rows,
                  frozenset(range(1, 2 + len(metrics))))  # fmt: skip
    return Section("Over seeds", ("Mean ± standard deviation over the runs of each setting.",), (),
                   (table,))  # fmt: skip


def parameters(outcome: Outcome) -> Section | None:
    if outcome.columns is None or not outcome.columns["parameters"]:
        return None
    fit = outcome.importance
    words = "How much each matters is not known: the sweep's file names no metric."
    shares: dict[str, str] = {}
    if fit is not None and fit["explained"] is not None:
        for parameter in fit["parameters"]:
            sure = "" if parameter["is_sure"] else " ?"
            shares[parameter["name"]] = f"{100 * parameter['share']:.0f} %{sure}"
        words = (
            f"The parameters explain {100 * fit['explained']:.0f} % of how {fit['metric']} "
            f"differs over {fit['trials']} trials. ? is no more than chance would give."
        )
    elif fit is not None:
        words = (
            f"Importance needs {fit['needed']} trials with results; there are {fit['trials']}."
            if fit["trials"] < fit["needed"]
            else "All trials came to the same: nothing tells the parameters apart."
        )
    best = outcome.settings[0].values if outcome.settings else {}
    order = sorted(
        outcome.columns["parameters"],
        key=lambda parameter: -float(shares.get(parameter["name"], "-1 %").partition(" ")[0]),
    )
    rows = tuple(
        (
            parameter["name"],
            _searched(parameter),
            shares.get(parameter["name"], "-"),
            number(best[parameter["name"]]) if parameter["name"] in best else "-",
        )
        for parameter in order
    )
    head = ("parameter", "searched", "importance", "best")
    table = Table("parameters", "parameters", head, rows, frozenset({2, 3}))
    return Section("Parameters", (words,), (), (table,), ("importance", "slices"))


def _searched(parameter: Mapping[str, Any]) -> str:
    """Where it was looked for; a few choices are named."""
    choices = [number(tick["value"]) for tick in parameter["ticks"]]
    if parameter["categories"] and len(choices) == parameter["categories"] <= _MOST_CHOICES:
        return ", ".join(choices)
    range_text: str = parameter["said"]
    return range_text


def convergence(outcome: Outcome) -> Section | None:
    if outcome.columns is None or not outcome.columns["convergence"] or not outcome.aims:
        return None
    steps = outcome.columns["convergence"]
    counted = sum(
        trial["value"] is not None and trial["state"] in RESULT_STATES for trial in outcome.trials
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


def sweeps(report: Report) -> Section:
    if not report.outcomes and not report.alone:
        return Section("Sweeps", ("This project has no sweeps and no runs yet.",))
    rows = tuple(
        (
            outcome.sweep["name"]
            if outcome.sweep["name"] != outcome.sweep["id"]
            else outcome.sweep["id"],
            outcome.sweep["state"],
            str(outcome.sweep["trials"]),
            str(outcome.counts.get("failed", 0)),
            duration(sum(trial["seconds"] for trial in outcome.trials)),
            _best_words(outcome),
        )
        for outcome in report.outcomes
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
