"""How far ahead suggestions are prepared: far enough that no claim waits, and no further.

A suggestion that was made before results came in does not know of them. None is handed out that is
blind to more than half as many results as trials are at work.
"""

from __future__ import annotations


def most_blind(at_work: int) -> int:
    """How many results a suggestion may be blind to."""
    return max(1, at_work // 2)


def is_stale(made_after: int, results: int, at_work: int) -> bool:
    """Whether a suggestion, made when there were `made_after` results, is too old to be used."""
    return results - made_after > most_blind(at_work)


def wanted(at_work: int) -> int:
    """How many suggestions to keep ready: each is used up after as many more results."""
    return most_blind(at_work)
