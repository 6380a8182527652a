"""Names for runs that were given none: two words and the run's number in its project."""

from __future__ import annotations

import secrets
import sqlite3

_FIRST = (
    "amber brisk calm clear copper crisp dawn deep early even fair fast fern firm first fresh glad "
    "gold grand green happy hazel high ivory jade keen kind late light lively long lucky mellow "
    "mild misty neat new noble north olive pale plain proud quick quiet rapid ready royal rustic "
    "sharp silver sleek smooth snowy solar steady still stout sunny swift tidal tidy vivid warm"
)
_SECOND = (
    "anchor arbor arch aspen atlas badger barn bay beacon birch bison bridge brook canyon cedar "
    "cliff cloud comet coral crane creek delta dune eagle ember falcon field fjord forest fox gale "
    "glade grove harbor hawk heron hill island lake lantern larch lynx maple marsh meadow mill "
    "moose orchard otter owl peak pine plain pond quarry raven reef ridge river robin sail shore "
    "spruce star stone summit thicket tide trail valley wave willow wren"
)
FIRST, SECOND = tuple(_FIRST.split()), tuple(_SECOND.split())


def invent_name(connection: sqlite3.Connection, project: int) -> str:
    count = connection.execute(
        "SELECT count(*) FROM runs WHERE project = ?", (project,)
    ).fetchone()[0]
    return f"{secrets.choice(FIRST)}-{secrets.choice(SECOND)}-{count + 1}"
