"""The plots of a report: each a function from what was found to a picture, or to none."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from runyard.reading.units import number
from runyard.report.drawing.scales import Scale, scale_of
from runyard.report.drawing.shapes import Box, Dot, Line, Picture, Shape, Words, cut, width_of
from runyard.report.findings import Group, Outcome, Report
from runyard.report.results import MOST_BEST
from runyard.report.tables import hours, measure
from runyard.shapes.sweeps import Tick
from runyard.vocabulary import RESULT_STATES

Item = TypeVar("Item")
WIDTH, HEIGHT = 560.0, 290.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 16.0, 36.0, 40.0
_BAR, _ROW = 14.0, 26.0
_MOST_SLICES = 4
# More could not be told apart, and would make a large file.
_MOST_DOTS = 1500


def pictures(report: Report) -> list[Picture]:
    """All that there is something to draw for."""
    drawn = [_resources(report), _hours(report), _failures(report)]
    outcome = report.outcome
    if outcome is not None:
        draw: Sequence[Callable[[Outcome], Picture | None]] = (
            _convergence, _front, _seeds, _importance, _slices,
        )  # fmt: skip
        drawn += [plot(outcome) for plot in draw]
    return [picture for picture in drawn if picture is not None]


def _resources(report: Report) -> Picture | None:
    """What was used of what was asked for, resource by resource, in the costliest jobs."""
    groups = [group for group in report.groups if group.jobs]
    rows = _shares(groups[0]) if groups else []
    if not rows:
        return None
    bars = [(name, [(share, "accent" if share <= 1 else "bad")], f"{100 * share:.0f} %")
            for name, share in rows]  # fmt: skip
    return _bars("resources", "Used of what was asked for", bars, most=1.0, ground="line")


def _shares(group: Group) -> list[tuple[str, float]]:
    pairs = (
        ("time", group.most("longest"), group.most("limit")),
        ("CPU", group.total("cpu_used"), group.total("cpu_held")),
        ("memory", group.most("memory_peak"), group.most("memory_asked")),
        ("GPU", group.total("gpu_used"), group.total("gpu_held")),
        ("VRAM", group.most("vram_peak"), group.most("vram_total")),
    )
    return [(name, used / held) for name, used, held in pairs if used is not None and held]


def _hours(report: Report) -> Picture | None:
    """Where the hours went that jobs held."""
    bars = []
    for kind, name in (("cpu", "core-hours"), ("gpu", "GPU-hours")):
        held, used = report.total(f"{kind}_held"), report.total(f"{kind}_used")
        if held and used is not None:
            lost = min(report.total(f"{kind}_lost") or 0.0, used)
            parts = [(max(0.0, used - lost) / held, "good"), (lost / held, "bad"),
                     (max(0.0, held - used) / held, "idle")]  # fmt: skip
            bars.append((name, parts, f"{hours(held)} h"))
    if not bars:
        return None
    legend = [("good", "used"), ("bad", "used by what failed"), ("idle", "idle")]
    if not (report.total("cpu_lost") or report.total("gpu_lost")):
        del legend[1]
    return _bars("hours", "Where the hours went", bars, most=1.0, legend=legend)


def _failures(report: Report) -> Picture | None:
    if len(report.failures) < 2:
        return None
    most = max(failure.attempts for failure in report.failures)
    bars = [(failure.words, [(float(failure.attempts), "warn" if failure.goes_on else "bad")],
             str(failure.attempts)) for failure in report.failures]  # fmt: skip
    legend = [("bad", "failed"), ("warn", "cut off, goes on")]
    legend = [entry for entry in legend if any(entry[0] == parts[0][1] for _, parts, _ in bars)]
    return _bars("failures", "Attempts that did not get through", bars, most=most, legend=legend)


def _importance(outcome: Outcome) -> Picture | None:
    importance = outcome.importance
    if importance is None or not importance["parameters"]:
        return None
    bars = [
        (row["name"], [(row["share"], "accent" if row["is_sure"] else "pale")],
         f"{100 * row['share']:.0f} %")
        for row in importance["parameters"]
    ]  # fmt: skip
    most = max(0.01, *(row["share"] for row in importance["parameters"]))
    legend = (("accent", "sure"), ("pale", "no more than chance"))
    return _bars(
        "importance", f"What {importance['metric']} depends on", bars, most=most, legend=legend
    )


def _bars(
    name: str,
    title: str,
    bars: Sequence[tuple[str, Sequence[tuple[float, str]], str]],
    *,
    most: float,
    ground: str | None = None,
    legend: Sequence[tuple[str, str]] = (),
) -> Picture:
    """A row a name: parts one behind the other, and words at the end."""
    room = min(220.0, max(width_of(words) for words, _, _ in bars) + 8)
    begin, end = room + 12, WIDTH - 64
    shapes: list[Shape] = [Words(0, 16, title, "text", 13, is_bold=True)]
    top = 34.0
    if legend:
        shapes += _legend(legend, top)
        top += 22
    for place, (words, parts, value_text) in enumerate(bars):
        y = top + place * _ROW
        shapes.append(Words(room, y + 11, cut(words, room), "text", anchor="end"))
        if ground is not None:
            shapes.append(Box(begin, y, end - begin, _BAR, ground))
        at = begin
        for value, role in parts:
            width = min(end - at, (end - begin) * value / most)
            shapes.append(Box(at, y, width, _BAR, role, f"{words}: {value_text}"))
            at += max(0.0, width)
        shapes.append(Words(end + 8, y + 11, value_text, "text"))
    return Picture(name, title, WIDTH, top + len(bars) * _ROW, shapes)


def _legend(entries: Sequence[tuple[str, str]], y: float) -> list[Shape]:
    shapes: list[Shape] = []
    x = 0.0
    for role, words in entries:
        shapes += [Box(x, y, 10, 10, role), Words(x + 15, y + 9, words, size=11)]
        x += 15 + width_of(words, 11) + 18
    return shapes


def _convergence(outcome: Outcome) -> Picture | None:
    """Every trial in the order of ending, and the best so far."""
    columns = outcome.columns
    if columns is None or not outcome.aims or not columns["convergence"]:
        return None
    metric = outcome.aims[0].name
    measured, trials = columns["measured"].get(metric, []), columns["trials"]
    ended = sorted(
        (trials["ended"][place], value, trials["name"][place], trials["state"][place])
        for place, value in enumerate(measured)
        if trials["ended"][place] is not None and _counts(outcome, place, value)
    )
    if len(ended) < 2:
        return None
    x = Scale(0, len(ended) + 1, _LEFT, WIDTH - _RIGHT)
    y = scale_of([value for _, value, _, _ in ended], HEIGHT - _BOTTOM, _TOP + 22)
    shapes = _frame(f"{metric} over trials, in the order of their ends", x, y, "trials", metric)
    entries = [("pale", "a trial"), ("accent", "the best so far")]
    if any(state == "stopped" for _, _, _, state in ended):
        entries.insert(1, ("idle", "stopped early"))
    shapes += _legend(entries, _TOP - 8)
    for place, (_, value, name, state) in _thinned(list(enumerate(ended, 1))):
        role = "idle" if state == "stopped" else "pale"
        shapes.append(Dot(x(place), y(value), 3.2, role, is_hollow=not y.holds(value),
                          title=f"{name}: {number(value)}"))  # fmt: skip
    steps: list[tuple[float, float]] = []
    for step in columns["convergence"]:
        if steps:
            steps.append((x(step["order"]), steps[-1][1]))
        steps.append((x(step["order"]), y(step["value"])))
    steps.append((x(len(ended)), steps[-1][1]))
    shapes.append(Line(tuple(steps), "accent", 2))
    return Picture("convergence", f"{metric} over trials", WIDTH, HEIGHT, shapes)


def _thinned(items: Sequence[Item]) -> Sequence[Item]:
    return items[:: math.ceil(len(items) / _MOST_DOTS) or 1]


def _counts(outcome: Outcome, place: int, value: object) -> bool:
    """Whether a trial has a result: the search looks at those that finished or were stopped."""
    assert outcome.columns is not None
    state = outcome.columns["trials"]["state"][place]
    return isinstance(value, int | float) and state in RESULT_STATES


def _frame(title: str, x: Scale, y: Scale, below: str, beside: str) -> list[Shape]:
    shapes: list[Shape] = [Words(0, 16, title, "text", 13, is_bold=True)]
    for value, words in y.ticks():
        shapes.append(Line(((x.begin, y(value)), (x.end, y(value))), "line"))
        shapes.append(Words(x.begin - 6, y(value) + 4, words, size=11, anchor="end"))
    for value, words in x.ticks(8):
        shapes.append(Words(x(value), y.begin + 16, words, size=11, anchor="middle"))
    shapes.append(Line(((x.begin, y.begin), (x.end, y.begin)), "soft"))
    middle = ((x.begin + x.end) / 2, (y.begin + y.end) / 2)
    shapes.append(Words(middle[0], y.begin + 34, below, size=11, anchor="middle"))
    room = abs(y.begin - y.end)
    shapes.append(
        Words(11, middle[1], cut(beside, room, 11), size=11, anchor="middle", is_upright=True)
    )
    return shapes


def _front(outcome: Outcome) -> Picture | None:
    """Two metrics against each other, and the trials that no other beats in both."""
    columns = outcome.columns
    if columns is None or len(outcome.aims) != 2:
        return None
    first, second = (columns["measured"].get(aim.name, []) for aim in outcome.aims)
    both = [
        (columns["trials"]["number"][place], *pair)
        for place, pair in enumerate(zip(first, second, strict=False))
        if all(_counts(outcome, place, value) for value in pair)
    ]
    if len(both) < 2:
        return None
    x = scale_of([x_value for _, x_value, _ in both], _LEFT, WIDTH - _RIGHT)
    y = scale_of([y_value for _, _, y_value in both], HEIGHT - _BOTTOM, _TOP + 22)
    names = [aim.name for aim in outcome.aims]
    shapes = _frame(f"{names[1]} against {names[0]}", x, y, names[0], names[1])
    shapes += _legend((("pale", "a trial"), ("accent", "Pareto front")), _TOP - 8)
    front = set(columns["front"])
    best = sorted((x_value, y_value) for trial, x_value, y_value in both if trial in front)
    shapes += [
        Dot(x(x_value), y(y_value), 3.2, "pale")
        for trial, x_value, y_value in _thinned(both)
        if trial not in front
    ]
    if len(best) > 1:
        shapes.append(
            Line(tuple((x(x_value), y(y_value)) for x_value, y_value in best), "accent", 1.2)
        )
    shapes += [Dot(x(x_value), y(y_value), 4, "accent") for x_value, y_value in best]
    return Picture("front", "Pareto front", WIDTH, HEIGHT, shapes)


def _seeds(outcome: Outcome) -> Picture | None:
    """The best settings: mean and deviation, and every seed."""
    shown = [setting for setting in outcome.settings[:MOST_BEST] if len(setting.trials) > 1]
    if not shown or not outcome.aims:
        return None
    metric = outcome.aims[0].name
    values = [[trial["metrics"][metric] for trial in setting.trials] for setting in shown]
    labels = [f"{place}  {setting.trials[0]['id']}" for place, setting in enumerate(shown, 1)]
    begin = min(220.0, max(width_of(label) for label in labels) + 16)
    x = scale_of([value for seeds in values for value in seeds], begin, WIDTH - 150)
    height = 40 + len(shown) * _ROW
    shapes: list[Shape] = [
        Words(0, 16, f"{metric} over seeds: mean ± deviation", "text", 13, is_bold=True)
    ]
    for value, words in x.ticks(6):
        shapes.append(Line(((x(value), 28), (x(value), height - 6)), "line"))
        shapes.append(Words(x(value), height + 10, words, size=11, anchor="middle"))
    for place, (setting, seeds) in enumerate(zip(shown, values, strict=True)):
        y = 42 + place * _ROW
        mean, away = setting.means[0], setting.deviations[0] or 0.0
        shapes.append(Words(begin - 8, y + 4, labels[place], "text", anchor="end"))
        shapes.append(Line(((x(mean - away), y), (x(mean + away), y)), "accent", 2))
        shapes += [Dot(x(value), y, 2.6, "pale") for value in seeds]
        shapes.append(Dot(x(mean), y, 4, "accent"))
        shapes.append(Words(WIDTH - 134, y + 4, measure(mean, setting.deviations[0]), size=11))
    return Picture("seeds", f"{metric} over seeds", WIDTH, height + 18, shapes)


def _slices(outcome: Outcome) -> Picture | None:
    """The metric against each parameter that matters, all trials."""
    columns, importance = outcome.columns, outcome.importance
    if columns is None or importance is None or not importance["parameters"] or not outcome.aims:
        return None
    metric = outcome.aims[0].name
    known = {parameter["name"]: parameter for parameter in columns["parameters"]}
    chosen = [
        parameter["name"] for parameter in importance["parameters"] if parameter["name"] in known
    ][:_MOST_SLICES]
    measured = columns["measured"].get(metric, [])
    values = [row for place, row in enumerate(measured) if _counts(outcome, place, row)]
    if not chosen or len(values) < 2:
        return None
    gap = 14.0
    width = (WIDTH - _LEFT - _RIGHT - gap * (len(chosen) - 1)) / len(chosen)
    y = scale_of(values, HEIGHT - _BOTTOM, _TOP)
    shapes: list[Shape] = [
        Words(0, 16, f"{metric} against what matters most", "text", 13, is_bold=True)
    ]
    for value, words in y.ticks():
        shapes.append(Line(((_LEFT, y(value)), (WIDTH - _RIGHT, y(value))), "line"))
        shapes.append(Words(_LEFT - 6, y(value) + 4, words, size=11, anchor="end"))
    for place, name in enumerate(chosen):
        begin = _LEFT + place * (width + gap)
        x = Scale(0, 1, begin + 8, begin + width - 8)
        shapes.append(Line(((begin, y.begin), (begin + width, y.begin)), "soft"))
        shapes += _ticks(known[name]["ticks"], x, y.begin + 16)
        shapes.append(Words(begin + width / 2, y.begin + 34, cut(name, width), "text", 11,
                            "middle"))  # fmt: skip
        both = zip(columns["places"][name], measured, strict=True)
        for trial, (at, value) in _thinned(list(enumerate(both))):
            if at is not None and _counts(outcome, trial, value):
                shapes.append(Dot(x(at), y(value), 2.8, "accent", is_hollow=not y.holds(value)))
    return Picture("slices", f"{metric} against parameters", WIDTH, HEIGHT, shapes)


def _ticks(ticks: Sequence[Tick], x: Scale, y: float) -> list[Shape]:
    """As many as there is room for; the first and the last rather than those between."""
    shapes: list[Shape] = []
    taken: list[tuple[float, float]] = []
    order = [*ticks[:1], *ticks[-1:], *ticks[1:-1]] if len(ticks) > 2 else list(ticks)
    for tick in order:
        words = cut(number(tick["value"]), 60, 10)
        half, at = width_of(words, 10) / 2, x(tick["place"])
        if all(at + half + 4 < begin or at - half - 4 > end for begin, end in taken):
            taken.append((at - half, at + half))
            shapes.append(Words(at, y, words, size=10, anchor="middle"))
    return shapes
