"""What `runyard gauge` found, as text of at most the terminal's width."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from runyard.actions.trying.gauge import newest_of_each
from runyard.cli.connect import server
from runyard.cli.output import (
    Columns,
    ago,
    console,
    duration,
    number,
    print_json,
    print_records,
    print_table,
    size,
)

if TYPE_CHECKING:
    from runyard.gauge.conclusions import Conclusion, Raw
    from runyard.gauge.measured import Measured
    from runyard.gauge.packs import Climb

_WIDTH = 79
_ROOMS: Columns = {
    "GPU": lambda room: room.gpu,
    "MEMORY": lambda room: f"{room.memory_gb:g} GB",
    "AT A TIME": lambda room: str(room.count or "does not fit"),
}


def print_conclusion(conclusion: Conclusion, raw: Raw, kind: str) -> None:
    out, measured = console(), conclusion.measured
    where = f" on {conclusion.hardware}" if conclusion.hardware else ""
    many = f", {raw.at_once} at a time" if raw.at_once > 1 else ""
    head = f"{kind}{where}{many}: looked at for {duration(measured.seconds)}"
    out.print(head, style="bold", soft_wrap=True)
    for name, text in _figures(measured):
        out.print(f"  {name:<13} {text}", soft_wrap=True)
    if conclusion.climb is not None:
        _print_climb(conclusion.climb)
    if conclusion.rooms and measured.vram_peak:
        out.print("")
        print_records(_ROOMS, conclusion.rooms)
    out.print(f"\nask for  {conclusion.ask.options()}", style="bold green", soft_wrap=True)
    for note in conclusion.notes:
        print("\n".join(textwrap.wrap(note, _WIDTH, initial_indent="- ", subsequent_indent="  ")))


def _figures(use: Measured) -> list[tuple[str, str]]:
    rows = []
    for name, peak in use.vram_peaks.items():
        whose = "" if not use.vram_is_of_card else ", the card's growth"
        rows.append(("GPU memory", f"{size(peak)} at most on GPU {name}{whose}"))
    if use.gpu_use is not None:
        rows.append(("GPU", f"{100 * use.gpu_use:.0f} % busy"))
    level = "still growing" if use.memory_growth else "level" if use.is_level else "not level yet"
    rows.append(("memory", f"{size(use.memory_peak)} at most, {level}"))
    rows.append(("CPU", f"{use.cpus:.1f} CPUs busy"))
    rows.append(("disk", f"{size(use.read_bytes)} read, {size(use.written_bytes)} written"))
    if use.steps_per_second is not None:
        warm = "" if use.warm_up is None else f", after {duration(use.warm_up)} of warm-up"
        rows.append(("steps", f"{number(use.steps_per_second)} a second{warm}"))
    if use.whole_seconds is not None:
        how = "it took that" if use.exit_code == 0 else f"estimated from {use.step} of {use.total}"
        if use.whole_between is not None:
            low, high = use.whole_between
            how = f"{duration(low)} to {duration(high)}, {how}"
        rows.append(("a whole run", f"{duration(use.whole_seconds)} ({how})"))
    return rows


def _print_climb(climb: Climb) -> None:
    console().print("")
    alone = climb.levels[0]
    rows = []
    for level in climb.levels:
        gain = level.gain_over(alone)
        together = "-" if gain is None else f"{gain:.2f}"
        each = "-" if gain is None else f"{100 * gain / level.count:.0f} %"
        rate = "-" if level.rate is None else number(level.rate)
        mark = "best" if level is climb.best or level == climb.best else ""
        rows.append((str(level.count), rate, together, each, mark))
    print_table(("AT A TIME", "STEPS/S", "TOGETHER", "SPEED OF EACH", ""), rows)
    console().print(f"{climb.best.count} at a time: {climb.why}", soft_wrap=True)


def list_known(project: str, *, as_json: bool) -> int:
    """What was measured in a project, by kind of experiment."""
    figures = server().figures.known(project)["figures"]
    if as_json:
        print_json(figures)
    elif not figures:
        print(f"nothing was measured in {project} yet: runyard gauge -- python train.py")
    else:
        print_records(_KNOWN, newest_of_each(figures))
    return 0


def _figure(row: Any, name: str, text: Callable[[Any], str]) -> str:
    value = row["figures"].get(name)
    return "-" if value is None else text(value)


_KNOWN: Columns = {
    "KIND": "kind",
    "ON": lambda row: row["hardware"] or "no GPU",
    "A WHOLE RUN": lambda row: _figure(row, "whole_seconds", duration),
    "MEMORY": lambda row: size(int(row["figures"].get("memory_peak") or 0)),
    "GPU MEMORY": lambda row: _figure(row, "vram_peak", lambda peak: size(int(peak))),
    "WHEN": lambda row: ago(row["made_at"]),
}
