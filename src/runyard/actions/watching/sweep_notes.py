"""What to know of a sweep beside its counts: its budget, and whether it may be stopped."""

from __future__ import annotations

from runyard.search.budget import tell_use
from runyard.shapes.sweeps import Sweep

# The page has the same number.
UNLIKELY = 0.02


def sweep_notes(sweep: Sweep) -> list[str]:
    notes = []
    if sweep["budget"]:
        notes.append(f"budget: {tell_use(**sweep['budget'])}")
    chance = sweep["chance"]
    if chance is not None and chance <= UNLIKELY:
        notes.append(
            "stop? The search expects no setting that beats the best by more than 1 % (chance "
            f"{_percent(chance)}): `runyard cancel --finish {sweep['id']}`"
        )
    return notes


def _percent(chance: float) -> str:
    return "under 0.1 %" if chance < 0.001 else f"{100 * chance:.1f} %"
