"""What an action tells while it works.

Each kind of progress is a class, so that a caller can show it in its own way, or leave it out. An
action takes `notify` and calls it with one event at a time, in the order in which things happen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


class Event:
    """Something that a caller may want to know before the result is there."""


@dataclass(frozen=True)
class Notice(Event):
    """A sentence for a person: advice, or what was done beside what was asked for."""

    text: str


Notify = Callable[[Event], None]


def ignore(_event: Event) -> None:
    """For callers who want the result alone."""


def in_words(notify: Notify) -> Callable[[str], None]:
    """For functions of other rooms, which tell what they do in words."""
    return lambda text: notify(Notice(text))
