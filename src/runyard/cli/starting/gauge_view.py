"""What `runyard gauge` found, as text of at most the terminal's width."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from runyard.cli.connect import server
from runyard.cli.output import ago, console, duration, number, print_json, print_table, size
from runyard.reading.units import short_memory, short_time

if TYPE_CHECKING:
    from runyard.gauge.advice import Ask
    from runyard.gauge.conclusions import Conclusion, Raw
    from runyard.gauge.measured import Measured
    from runyard.gauge.packs import Climb

_WIDTH = 79


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
        print_table(
            ("GPU", "MEMORY", "AT A TIME"),
            (
                (room.gpu, f"{room.memory_gb:g} GB", str(room.count or "does not fit"))
                for room in conclusion.rooms
            ),
        )
    out.print(f"\nask for  {ask_text(conclusion.ask)}", style="bold green", soft_wrap=True)
    for note in conclusion.notes:
        print("\n".join(textwrap.wrap(note, _WIDTH, initial_indent="- ", subsequent_indent="  ")))


def ask_text(ask: Ask) -> str:
    """As options."""
    parts = [f"--memory {short_memory(ask.memory)}", f"--cpus {ask.cpus}"]
    if ask.seconds is not None:
        parts.insert(0, f"--time {short_time(ask.seconds)}")
    if ask.per_gpu is not None and ask.per_gpu > 1:
        parts.append(f"--per-gpu {ask.per_gpu}")
    if ask.chain is not None:
        parts.append(f"--chain {ask.chain}")
    return " ".join(parts)


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
    known = server().figures.known(project)
    if as_json:
        print_json(known["figures"])
        return 0
    if not known["figures"]:
        print(f"nothing was measured in {project} yet: runyard gauge -- python train.py")
        return 0
    rows, seen = [], set()
    for row in known["figures"]:
        if (row["kind"], row["hardware"]) in seen:
            continue
        seen.add((row["kind"], row["hardware"]))
        figures = row["figures"]
        whole, vram = figures.get("whole_seconds"), figures.get("vram_peak")
        rows.append(
            (
                row["kind"],
                row["hardware"] or "no GPU",
                "-" if whole is None else duration(whole),
                size(int(figures.get("memory_peak") or 0)),
                "-" if vram is None else size(int(vram)),
                ago(row["made_at"]),
            )
        )
    print_table(("KIND", "ON", "A WHOLE RUN", "MEMORY", "GPU MEMORY", "WHEN"), rows)
    return 0
