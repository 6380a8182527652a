"""Keys that are not known: each with the word that was probably meant, and never a page of them."""

from __future__ import annotations

from runyard.reading.fields import Fields
from runyard.reading.problems import Findings


def test_of_thousands_of_unknown_keys_the_first_ones_are_named_and_the_others_counted() -> None:
    findings = Findings()
    Fields({"sed": 1, **{f"key{number}": 0 for number in range(5_000)}}, (), findings).allow(
        ["seed", "lr"]
    )
    first, *_, last = map(str, findings)
    assert first == 'sed: "sed" is not a key here; did you mean seed?'
    assert last == "key19: 4981 more are no keys here; remove them; allowed: seed or lr"
    assert len(list(findings)) == 21
