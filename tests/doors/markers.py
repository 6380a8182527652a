"""Secret texts of the world, each with the audience that may read it, and finding them again."""

from __future__ import annotations

import base64
import binascii
import gzip
import itertools
import re
from collections.abc import Mapping

# `mkbobx7`: the seventh text, for the audience `bob`.
_MARKER = re.compile(r"mk([a-z]+)x\d+")
_ENCODED = re.compile(rb"[A-Za-z0-9+/_-]{12,}={0,2}")
_numbers = itertools.count(1)

ADMIN, ADMINS_KEY = "ada", "ada's key for runs"
# Audience of a text → the people who may read it. The admin may read everything. Names of people
# and teams are texts as well: who has nothing in common with somebody does not learn the name.
AUDIENCES: Mapping[str, frozenset[str]] = {
    "bob": frozenset({"bob"}),
    "lab": frozenset({"bob", "tom"}),
    "tom": frozenset({"tom"}),
    "eve": frozenset({"eve"}),
    "fay": frozenset({"fay"}),
    "guild": frozenset({"bob"}),
    # A key of the admin's that is for runs shows the admin's own alone.
    "ada": frozenset({ADMINS_KEY}),
    # By fay for the team, when she was in it.
    "labfay": frozenset({"bob", "tom", "fay"}),
    "teamlab": frozenset({"bob", "tom"}),
    "teamguild": frozenset({"bob"}),
    # Fay has left: what she made for the team names her.
    "personbob": frozenset({"bob", "tom"}),
    "persontom": frozenset({"bob", "tom"}),
    "personeve": frozenset({"eve"}),
    "personfay": frozenset({"bob", "tom", "fay"}),
    "personada": frozenset(),
}


def marker(audience: str) -> str:
    assert audience in AUDIENCES, audience
    return f"mk{audience}x{next(_numbers)}"


def may_see(person: str | None, audience: str) -> bool:
    return person == ADMIN or person in AUDIENCES[audience]


def find(content: bytes, *, depth: int = 2) -> dict[str, str]:
    """The markers in an answer, with their audiences; also in what is packed or in base64."""
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    found = {match[0]: match[1] for match in _MARKER.finditer(content.decode("latin-1"))}
    if depth:
        for token in set(_ENCODED.findall(content)):
            for decode in (base64.b64decode, base64.urlsafe_b64decode):
                try:
                    found |= find(
                        decode(token.rstrip(b"=") + b"=" * (-len(token.rstrip(b"=")) % 4)),
                        depth=depth - 1,
                    )
                except (binascii.Error, ValueError, OSError, EOFError):
                    continue
    return found
