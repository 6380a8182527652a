"""The regular expressions of filters: what they find is what Python finds, but never slowly."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.server.runs.patterns import BadPattern, Pattern


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("lr", "my-lr-run", True),
        ("^lr", "my-lr-run", False),
        ("run$", "my-lr-run", True),
        (r"^seed-\d+$", "seed-12", True),
        (r"^seed-\d+$", "seed-", False),
        (r"^seed-\d{2,3}$", "seed-1234", False),
        (r"\blr\b", "a lr b", True),
        (r"\blr\b", "alr b", False),
        ("(?i)RESNET", "resnet50", True),
        ("[^a-c]", "abc", False),
        ("a|b|", "zzz", True),
        ("(ab)*c", "ababc", True),
        (r"v1\.0", "v1x0", False),
        ("größe", "die größe", True),
        (r"[\w.]+@[]x]", "a.b@]", True),
    ],
)
def test_what_is_found(pattern: str, text: str, found: bool) -> None:
    assert Pattern(pattern).search(text) is found
    assert bool(re.search(pattern, text)) is found


_ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\d", r"\w", "1", r"\b", "^", "$"])
_PATTERNS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,}"])).map(
            lambda one: f"(?:{one[0]}){one[1]}"
        ),
    ),
    max_leaves=8,
)


@given(_PATTERNS, st.text("ab1 -", max_size=8))
def test_it_finds_what_python_finds(pattern: str, text: str) -> None:
    assert Pattern(pattern).search(text) is bool(re.search(pattern, text))


@given(st.text("ab(|)[]{}*+?^$\\-.12,:<>Piu", max_size=12))
def test_odd_patterns_are_read_or_refused(pattern: str) -> None:
    with contextlib.suppress(BadPattern):
        Pattern(pattern).search("ab12")


def test_a_pattern_that_keeps_others_busy_for_hours_does_not_keep_this_one() -> None:
    assert not Pattern("(a+)+$").search("a" * 100_000 + "b")
    assert not Pattern("(a|a)*(.*)*x").search("a" * 100_000)
    assert Pattern("(" * 900 + ")" * 900).search("a" * 100_000)


def test_half_of_a_surrogate_pair_is_a_character_like_others() -> None:
    assert not Pattern("\ud800b").search("ab")
    assert Pattern("^a.b$").search("a\ud800b")


@pytest.mark.parametrize(
    "pattern",
    [
        "(a",
        "a)",
        "*a",
        "[a",
        "a{3,2}",
        r"(a)\1",
        "(?=a)",
        "a**",
        "((a{99}){99}){99}",
        # Nothing, a billion times: an engine that unrolls it never ends.
        "((){9999}){999}",
        "(((){999}){999}){999}",
        "(?:a?){999}(?:b?){999}(?:c?){999}",
        "a" * 3_000,
    ],
)
def test_what_cannot_be_done_is_refused(pattern: str) -> None:
    with pytest.raises(BadPattern):
        Pattern(pattern)
