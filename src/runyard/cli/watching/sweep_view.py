"""A sweep at work, at its end and after it was steered, as text."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from runyard.actions.ending import steering
from runyard.actions.watching.listing import has_front, next_steps, sweep_notes
from runyard.cli.output import STATE_COLOURS, console, duration, number, print_json, say
from runyard.cli.watching.best_view import values_text
from runyard.cli.watching.sparkline import terminal_is_plain
from runyard.client.api import Api
from runyard.client.sweeps import ENDED_STATES
from runyard.shapes.sweeps import Sweep, Trial

if TYPE_CHECKING:
    from rich.text import Text

_BAR = 16
_MOST_RUNNING, _MOST_FAILED = 6, 3
STATES = (*ENDED_STATES, "running", "waiting", "paused")


def live(
    sweep: Sweep,
    running: Sequence[Trial],
    failed: Sequence[tuple[Trial, str]],
    note: str,
    width: int,
) -> Text:
    """What is going on, in a few lines that are drawn over and over."""
    from rich.text import Text

    lines = [_headline(sweep), _bar(sweep)]
    best = sweep["best"]
    if best is not None and best["value"] is not None:
        lines.append(
            Text.assemble(
                "  best     ",
                f"{sweep['metric']} " if has_front(sweep) else "",
                (number(best["value"]), "bold green"),
                f"  {best['name']}  {values_text(best['values'])}",
            )
        )
    for place, trial in enumerate(running[:_MOST_RUNNING]):
        since = duration(max(0.0, time.time() - (trial["started_at"] or time.time())))
        left = trial["seconds_left"]
        since += f", about {duration(left)} left" if left and left >= 1 else ""
        again = f"  attempt {trial['attempts']}" if trial["attempts"] > 1 else ""
        lines.append(Text(f"  {'running' if not place else '':<8} {trial['name']}  {since}{again}"))
    if len(running) > _MOST_RUNNING:
        lines.append(Text(f"  {'':<8} ... and {len(running) - _MOST_RUNNING} more"))
    for trial, why in failed[-_MOST_FAILED:]:
        lines.append(Text(f"  failed   {trial['name']}  {why}", style="red"))
    if note:
        lines.append(Text(f"  {note}", style="yellow"))
    for line in lines:
        line.truncate(width - 1, overflow="ellipsis")
    return Text("\n").join(lines)


def _headline(sweep: Sweep) -> Text:
    from rich.text import Text

    name = sweep["id"] if sweep["name"] == sweep["id"] else f"{sweep['id']} {sweep['name']}"
    aim = f", {sweep['goal']} {sweep['metric']}" if sweep["metric"] else ""
    state = sweep["state"]
    return Text.assemble(
        (f"sweep {name}", "bold"),
        f"  {sweep['method']}{aim}  ",
        (state if state != "running" else "", STATE_COLOURS.get(state, "yellow")),
    )


def _bar(sweep: Sweep) -> Text:
    from rich.text import Text

    counts, whole = sweep["counts"], sweep["expected"]
    ended = sum(counts[state] for state in ENDED_STATES)
    full, empty = ("#", ".") if terminal_is_plain() else ("█", "░")
    states = [state for state in ("waiting", "failed", "stopped") if counts[state]]
    parts = [f"{counts[state]} {state}" for state in ("running", *states)]
    if whole is not None and (sweep["eta_seconds"] or 0.0) >= 1:
        parts.append(f"about {duration(sweep['eta_seconds'] or 0.0)} left")
    words = "  ".join(parts)
    if not whole:
        return Text.assemble("  ", (f"{ended} ended", "cyan"), f"  {words}")
    filled = min(_BAR, _BAR * ended // whole)
    return Text.assemble(
        "  ",
        (full * filled, "cyan"),
        (empty * (_BAR - filled), "dim"),
        f"  {ended}/{whole}  {words}",
    )


def print_report(sweep: Sweep, failed: Sequence[tuple[Trial, str]], *, seconds: float) -> None:
    """How a sweep stands: the best trial, what failed and why, what next."""
    out = console()
    counts, state = sweep["counts"], sweep["state"]
    words = ", ".join(f"{counts[name]} {name}" for name in STATES if counts[name])
    head = f"sweep {sweep['id']} {state} after {duration(seconds)}: {words or 'no trials yet'}"
    out.print(head, style="bold", soft_wrap=True)
    if sweep["cause"]:
        out.print(f"  {sweep['cause']}", style="red", soft_wrap=True)
    for note in () if sweep["cause"] else sweep_notes(sweep):
        out.print(f"  {note}", soft_wrap=True)
    best = sweep["best"]
    if best is not None and best["value"] is not None:
        value = f"{sweep['metric']} {number(best['value'])}"
        title = f"best in {sweep['metric']}" if has_front(sweep) else "best"
        out.print(f"\n{title}  {best['name']}  {value}", style="green", soft_wrap=True)
        width = max((len(name) for name in best["values"]), default=0)
        for name, value in best["values"].items():
            out.print(f"  {name:<{width}}  {number(value)}", soft_wrap=True)
    if failed:
        out.print("\nfailed", style="red")
        for trial, why in failed[-_MOST_FAILED:]:
            out.print(f"  {trial['name']}  {why}", soft_wrap=True)
        if len(failed) > _MOST_FAILED:
            out.print(f"  ... and {len(failed) - _MOST_FAILED} more")
    out.print("")
    for command, what in next_steps(sweep, failed):
        out.print(f"  {command:<38}  {what}", soft_wrap=True)


def steer(api: Api, before: Sweep, action: str, *, as_json: bool) -> int:
    print_steered(before, steering.steer(api, before, action), action, as_json=as_json)
    return 0


def print_steered(before: Sweep, after: Sweep, action: str, *, as_json: bool) -> None:
    if as_json:
        print_json(after)
        return
    counts = after["counts"]
    if action == "retry-failed":
        again = before["counts"]["failed"] - counts["failed"]
        say(f"sweep {after['id']}: {again} failed trials wait to be run again")
    else:
        say(f"sweep {after['id']} is {after['state']}; {counts['running']} trials are running")
    if after["state"] == "running" and not after["agents"]:
        say(f"nobody works on it: `runyard sweep {after['id']}` does")
