"""Maintenances that are planned: a job that would reach into one begins only after it.

Slurm keeps nodes free for a reservation with the flag MAINT. A chain need not wait: its links may
be shorter, which Slurm is told by `--time-min`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from runyard.reading.units import short_time
from runyard.schedulers.errors import SchedulerError
from runyard.schedulers.resources import follow_rules
from runyard.schedulers.slurm.commands import ask, for_reading
from runyard.schedulers.slurm.values import clock, read_fields, read_time

if TYPE_CHECKING:
    from runyard.config.request import Request

# Asked beside a submission, which must not wait for it.
_SECONDS = 5.0
# A link that Slurm shortens has at least this part of what is left before the maintenance.
_SHARE = 0.5
_SHORTEST_LINK = 60.0


@dataclass(frozen=True)
class Maintenance:
    """From `start` to `end`; `nodes` in Slurm's words."""

    name: str
    start: float
    end: float
    nodes: str

    def is_in_the_way(self, now: float, seconds: float) -> bool:
        """Whether a job that begins now would reach into it."""
        return now < self.end and self.start < now + seconds


def read_maintenances(text: str) -> list[Maintenance]:
    """What `scontrol show reservation --oneliner` printed, the soonest first."""
    reservations = []
    for line in text.splitlines():
        fields = read_fields(line)
        start, end = read_time(fields.get("StartTime", "")), read_time(fields.get("EndTime", ""))
        if "MAINT" in fields.get("Flags", "").split(",") and start and end:
            nodes = fields.get("Nodes", "")
            reservations.append(Maintenance(fields.get("ReservationName", ""), start, end, nodes))
    return sorted(reservations, key=lambda reservation: reservation.start)


def mind_maintenance(
    request: Request, environ: Mapping[str, str]
) -> tuple[Request, tuple[str, ...]]:
    """The request as it fits before the next maintenance, as far as it can, and what is to be said;
    unchanged where there is none or Slurm does not say."""
    resources, now = request.resources, time.time()
    ruled = follow_rules(request, request.profile)
    try:
        reservation = _find(environ, ruled.time, resources.partition, resources.reservation, now)
    except SchedulerError:
        return request, ()
    if reservation is None:
        return request, ()
    limit = request.profile.limit(resources.partition, resources.qos)
    is_free = not any("time-min" in word for word in resources.extra) and ruled.asks_time
    link = 0.0
    if (request.agents.chain or 1) > 1 and is_free:
        link = shortest_link(reservation, ruled.time, limit.shortest or 0.0, now)
    if link:
        extra = (*resources.extra, f"--time-min={clock(link)}")
        request = replace(request, resources=replace(resources, extra=extra))
    return request, (words_for(reservation, ruled.time, link, now),)


def _find(
    environ: Mapping[str, str],
    seconds: float,
    partition: str | None,
    reservation: str | None,
    now: float,
) -> Maintenance | None:
    """The first that a job of this length would reach into, of all nodes that it could have."""
    there = read_maintenances(_ask(environ, "scontrol", "show", "reservation", "--oneliner"))
    for maintenance in there:
        if maintenance.name != reservation and maintenance.is_in_the_way(now, seconds):
            where = ["--partition", partition] if partition else []
            nodes = set(_ask(environ, "sinfo", "-h", "-N", "-o", "%N", *where).split())
            taken = set(_ask(environ, "scontrol", "show", "hostnames", maintenance.nodes).split())
            if nodes and nodes <= taken:
                return maintenance
    return None


def shortest_link(maintenance: Maintenance, seconds: float, shortest: float, now: float) -> float:
    """How short a link of a chain may be to fit in before; 0 where none does."""
    left = maintenance.start - now
    least = max(shortest, _SHORTEST_LINK)
    # Slurm's grain is a minute.
    wanted = max(least, min(seconds, left * _SHARE)) // 60 * 60
    return wanted if least <= wanted <= left else 0.0


def words_for(maintenance: Maintenance, seconds: float, link: float, now: float) -> str:
    """What the user is told."""
    when = time.strftime("%a %d %b %H:%M", time.localtime(maintenance.start))
    until = time.strftime("%a %d %b %H:%M", time.localtime(maintenance.end))
    head = f"a maintenance ({maintenance.name}) lasts from {when} to {until}"
    if maintenance.start <= now:
        return f"{head}: jobs begin after it"
    if link:
        return f"{head}: so that work begins before, Slurm may shorten links to {short_time(link)}"
    fits = (maintenance.start - now) // 60 * 60
    less = f", or before it with --time {short_time(fits)} or less" if fits >= 60 else ""
    return f"{head}: a job of {short_time(seconds)} that has not begun begins after it{less}"


def _ask(environ: Mapping[str, str], *words: str) -> str:
    answer = ask(list(words), environ=for_reading(environ), patience=0.0, seconds=_SECONDS)
    return answer.output if answer.is_good else ""
