"""Variables in paths of profiles and of runyard.yaml."""

from __future__ import annotations

import pytest

from runyard.reading.variables import UnsetVariable, expand


def test_the_innermost_is_filled_in_first() -> None:
    assert expand("${SCRATCH:-/shared/${USER}}/x", {"USER": "kim"}) == "/shared/kim/x"
    assert expand("${SCRATCH:-~/scratch}", {"HOME": "/home/kim"}) == "/home/kim/scratch"
    with pytest.raises(UnsetVariable):
        expand("$NOWHERE/x", {})


def test_what_stands_in_a_variable_is_not_read_again() -> None:
    """A folder may be called ${HOME}; once this never ended."""
    places = {"HOME": "/tmp/${HOME} $USER", "USER": "kim"}
    assert expand("${HOME}/x", places) == "/tmp/${HOME} $USER/x"
    assert expand("~/x", places) == "/tmp/${HOME} $USER/x"


def test_what_is_not_needed_is_not_missed() -> None:
    where = "${SCRATCH:-/shared/${USER}}/x"
    assert expand(where, {"SCRATCH": "/scratch"}) == "/scratch/x"
    assert expand("$A/mid/$B", {"A": "/a", "B": "b"}) == "/a/mid/b"
    with pytest.raises(UnsetVariable, match="USER"):
        expand(where, {})
