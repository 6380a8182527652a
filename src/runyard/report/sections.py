"""A report in words and tables, the same for every form that it is written in."""

from __future__ import annotations

from runyard.report import costs, results
from runyard.report.findings import Report
from runyard.report.tables import Section, hours, measure
from runyard.vocabulary import RESULT_STATES


def sections(report: Report) -> list[Section]:
    parts = [costs.asked_and_used(report), costs.savings(report), costs.failures(report)]
    outcome = report.outcome
    if outcome is not None:
        draw = (results.best, results.over_seeds, results.parameters, results.convergence)
        parts += [make(outcome) for make in draw]
    if report.kind == "project":
        parts.append(results.sweeps(report))
    if report.kind == "job":
        parts.append(costs.trials(report))
    return [section for section in parts if section is not None]


def in_short(report: Report) -> list[tuple[str, str]]:
    """The figures that are read first, each with its name."""
    figures: list[tuple[str, str]] = []
    outcome = report.outcome
    if outcome is not None and outcome.settings and outcome.aims:
        best = outcome.settings[0]
        figures.append((f"best {outcome.aims[0].name}", measure(best.means[0], best.deviations[0])))
    if outcome is not None:
        ended = sum(outcome.counts.get(state, 0) for state in RESULT_STATES)
        figures.append(("trials finished", f"{ended} of {outcome.sweep['trials']}"))
    for kind, name in (("gpu", "GPU-hours"), ("cpu", "core-hours")):
        held, wasted = report.total(f"{kind}_held"), report.wasted(kind)
        if held and wasted is not None:
            figures.append((f"{name} wasted", f"{hours(wasted)} of {hours(held)}"))
        elif held:
            figures.append((f"{name} held", hours(held)))
    used = report.total("cpu_used")
    if used is not None and not report.total("cpu_held"):
        figures.append(("core-hours used", hours(used)))
    failed = sum(failure.failed for failure in report.failures)
    if failed:
        figures.append(("trials failed", str(failed)))
    return figures
