"""Names: which ones a run and a project may have, and new ones for runs that were given none."""

from __future__ import annotations

import os
import secrets

from runyard.vocabulary import ID_LETTERS, LONGEST_NAME, NOT_IN_PROJECTS

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


_PAIRS = tuple(first + second for first in ID_LETTERS for second in ID_LETTERS)
_SHIFTS = (0, 32, 64, 96)
_NOT_IN_IDS = set(":;,#?/'")


class BadName(ValueError):
    """A name that would not survive in an address, or that clients refuse."""


def check_run_id(name: str) -> None:
    is_plain = _is_plain(name) and name == name.strip() and name.isprintable()
    if not is_plain or _NOT_IN_IDS & set(name):
        raise BadName(
            f"{name[:200]!r} cannot be a run id: it is empty, too long, or holds one of :;,#?/' "
            "or a blank at an end"
        )


def check_project(name: str) -> None:
    """A project's or an entity's name."""
    if not _is_plain(name) or set(NOT_IN_PROJECTS) & set(name):
        raise BadName(
            f"{name[:200]!r} cannot be a project: it is empty, too long, or holds one of "
            f"{NOT_IN_PROJECTS}"
        )


def _is_plain(name: str) -> bool:
    # Addresses lose a mere dot or two on their way.
    return 0 < len(name) <= LONGEST_NAME and name not in (".", "..")


def invent_name(number: int) -> str:
    return f"{secrets.choice(FIRST)}-{secrets.choice(SECOND)}-{number}"


def new_id() -> str:
    """Eight letters and digits, for a run, a sweep or a report."""
    # Two letters at a time, from twice as many bits as they need: none is likelier than another by
    # more than one part in two million.
    drawn = int.from_bytes(os.urandom(16), "big")
    return "".join([_PAIRS[(drawn >> shift & 0xFFFFFFFF) % len(_PAIRS)] for shift in _SHIFTS])
