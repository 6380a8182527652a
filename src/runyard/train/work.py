"""What the steps of a run cost against one another: by phases, or as in an earlier run. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

Mark = tuple[float, float]
"""Steps done, and the second by which."""

_PIECES = 40
# A run that goes on from a checkpoint knows nothing of what came before.
_LATEST_START = 0.05
# A step that compiles takes many times as long as the others, and says nothing of the rest. What
# takes as long again and again, such as an evaluation, is a part of the work.
ODD = 5.0
RECURRING = 3
_NEIGHBOURS = 3


@dataclass(frozen=True)
class Work:
    """A line through (steps, work that they are) points; without any, a step is a step."""

    points: tuple[tuple[float, float], ...] = ()
    once: tuple[tuple[float, float], ...] = ()
    """Seconds that come at a step, and once: another compilation."""

    @property
    def is_known(self) -> bool:
        """Whether steps were told apart."""
        return len(self.points) > 1

    def by(self, step: float) -> float:
        """The work that is done with so many steps."""
        if len(self.points) < 2:
            return step
        place = min(max(1, bisect_right(self.points, (step, 0.0))), len(self.points) - 1)
        (begin, before), (end, after) = self.points[place - 1 : place + 1]
        return before + (after - before) * (step - begin) / (end - begin)

    def once_after(self, step: float) -> float:
        return sum(seconds for at, seconds in self.once if at > step)


EVEN = Work()


def work_of_phases(phases: Sequence[tuple[int, float]]) -> Work:
    """Of (steps, cost of one of them) pairs; costs are in any unit."""
    points = [(0.0, 0.0)]
    for steps, cost in phases:
        if steps > 0:
            points.append((points[-1][0] + steps, points[-1][1] + steps * cost))
    return Work(tuple(points))


def course_of(marks: Sequence[Mark], total: int) -> dict[str, Any] | None:
    """How a whole run went: what each fortieth of its steps took, and what came once. None where
    too little was seen of it."""
    known = [after for before, after in pairwise([(-1.0, 0.0), *marks]) if after[0] > before[0]]
    if len(known) < 3 or known[0][0] > max(1.0, _LATEST_START * total) or known[-1][0] < total:
        return None
    pieces = [(b[0], a[0], a[1] - b[1]) for b, a in pairwise(known)]
    usual = [_usual(pieces, place) for place in range(len(pieces))]
    odd = [
        seconds > ODD * usual[place] * (end - begin)
        for place, (begin, end, seconds) in enumerate(pieces)
    ]
    if sum(odd) >= RECURRING:
        odd = [False] * len(pieces)  # An evaluation: a part of the work.
    points, once = [(known[0][0], 0.0)], []
    for place, (begin, end, seconds) in enumerate(pieces):
        regular = usual[place] * (end - begin) if odd[place] else seconds
        points.append((end, points[-1][1] + regular))
        if odd[place]:
            once.append([end, round(seconds - regular, 4)])
    line = Work(tuple(points))
    count = min(_PIECES, total)
    edges = [line.by(total * place / count) for place in range(count + 1)]
    return {
        "total": total,
        "pieces": [round(after - before, 6) for before, after in pairwise(edges)],
        "once": once,
    }


def work_of_course(course: Mapping[str, Any]) -> Work:
    pieces, total = course["pieces"], course["total"]
    points = [(0.0, 0.0)]
    for place, seconds in enumerate(pieces, 1):
        points.append((total * place / len(pieces), points[-1][1] + max(0.0, seconds)))
    return Work(tuple(points), tuple((at, seconds) for at, seconds in course["once"]))


def _usual(pieces: Sequence[tuple[float, float, float]], place: int) -> float:
    """Seconds a step around a piece: a run may have dear phases and cheap ones."""
    near = pieces[max(0, place - _NEIGHBOURS) : place + _NEIGHBOURS + 1]
    paces = sorted(seconds / (end - begin) for begin, end, seconds in near)
    return paces[(len(paces) - 1) // 2]
