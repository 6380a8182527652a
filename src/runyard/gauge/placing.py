"""Which programs share which GPU, if they need different amounts of memory. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from runyard.node.devices.slot_shares import rounded_peak


@dataclass
class Card:
    """One GPU, and the tasks that run on it at the same time."""

    tasks: list[int] = field(default_factory=list)
    memory: int = 0
    """Bytes that they need together, each rounded up."""


def place(peaks: Mapping[int, int], total: int, margin: float, most: int | None) -> list[Card]:
    """Few GPUs of `total` bytes, filled with the largest tasks first.

    `peaks`: bytes by task; no task needs more than a whole GPU. At most `most` share one.
    """
    usable = int(total * (1 - margin))
    cards: list[Card] = []
    for task in sorted(peaks, key=lambda peak: (-peaks[peak], peak)):
        need = rounded_peak(peaks[task])
        card = next(
            (
                card
                for card in cards
                if card.memory + need <= usable and (most is None or len(card.tasks) < most)
            ),
            None,
        )
        if card is None:
            card = Card()
            cards.append(card)
        card.tasks.append(task)
        card.memory += need
    for card in cards:
        card.tasks.sort()
    return sorted(cards, key=lambda card: card.tasks)
