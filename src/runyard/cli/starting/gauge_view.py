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


def print_conclusion(found: Conclusion, raw: Raw, kind: str) -> None:
    out, measured = console(), found.measured
    where = f" on {found.hardware}" if found.hardware else ""
    many = f", {raw.at_once} at a time" if raw.at_once > 1 else ""
    head = f"{kind}{where}{many}: looked at for {duration(measured.seconds)}"
    out.print(head, style="bold", soft_wrap=True)
    for name, text in _figures(measured):
        out.print(f"  {name:<13} {text}", soft_wrap=True)
    if found.climb is not None:
        _print_climb(found.climb)
    if found.rooms and measured.vram_peak:
        out.print("")
        print_table(
            ("GPU", "MEMORY", "AT A TIME"),
            (
                (one.gpu, f"{one.memory_gb:g} GB", str(one.count or "does not fit"))
                for one in found.rooms
            ),
        )
    out.print(f"\nask for  {ask_text(found.ask)}", style="bold green", soft_wrap=True)
    for note in found.notes:
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


def _figures(one: Measured) -> list[tuple[str, str]]:
    found = []
    for name, peak in one.vram_peaks.items():
        whose = "" if not one.vram_is_of_card else ", the card's growth"
        found.append(("GPU memory", f"{size(peak)} at most on GPU {name}{whose}"))
    if one.gpu_use is not None:
        found.append(("GPU", f"{100 * one.gpu_use:.0f} % busy"))
    level = "still growing" if one.memory_growth else "level" if one.is_level else "not level yet"
    found.append(("memory", f"{size(one.memory_peak)} at most, {level}"))
    found.append(("CPU", f"{one.cpus:.1f} CPUs busy"))
    found.append(("disk", f"{size(one.read_bytes)} read, {size(one.written_bytes)} written"))
    if one.steps_per_second is not None:
        warm = "" if one.warm_up is None else f", after {duration(one.warm_up)} of warm-up"
        found.append(("steps", f"{number(one.steps_per_second)} a second{warm}"))
    if one.whole_seconds is not None:
        how = "it took that" if one.exit_code == 0 else f"estimated from {one.step} of {one.total}"
        found.append(("a whole run", f"{duration(one.whole_seconds)} ({how})"))
    return found


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
    for one in known["figures"]:
        if (one["kind"], one["hardware"]) in seen:
            continue
        seen.add((one["kind"], one["hardware"]))
        told = one["figures"]
        whole, vram = told.get("whole_seconds"), told.get("vram_peak")
        rows.append(
            (
                one["kind"],
                one["hardware"] or "no GPU",
                "-" if whole is None else duration(whole),
                size(int(told.get("memory_peak") or 0)),
                "-" if vram is None else size(int(vram)),
                ago(one["made_at"]),
            )
        )
    print_table(("KIND", "ON", "A WHOLE RUN", "MEMORY", "GPU MEMORY", "WHEN"), rows)
    return 0
