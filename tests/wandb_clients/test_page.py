"""The page on compatibility tells of the flows and versions that there are, and of all of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.wandb_clients import page
from tests.wandb_clients.matrix import Outcome, load_flows, pairs
from tests.wandb_clients.table import draw, read
from tests.wandb_clients.versions import VERSIONS, ordered, requirements


def test_the_committed_table_has_every_flow_and_version() -> None:
    """Results are the matrix's business; here they are taken out, and what remains must agree."""
    drawn = draw({pair: Outcome() for pair in pairs()})
    committed = page.read_section("flows").partition("\n\n")[0]
    assert re.sub(r"✘\[\^\d+\]|\?", "✔", committed) == drawn


def test_each_failure_in_the_table_has_its_reason_below() -> None:
    table, _, notes = page.read_section("flows").partition("\n\n")
    marked = set(re.findall(r"✘\[\^(\d+)\]", table))
    assert marked == set(re.findall(r"^\[\^(\d+)\]: \S", notes, re.MULTILINE))


def test_a_table_is_read_as_it_was_drawn() -> None:
    """A run of one version leaves the columns of the others as they are."""
    outcomes = {pair: Outcome() for pair in pairs()[::2]}
    outcomes[pairs()[0]] = Outcome("the server was asleep")
    assert read(draw(outcomes)) == outcomes
    assert read("") == {}


def test_a_failure_is_drawn_with_its_reason() -> None:
    outcomes = {pair: Outcome() for pair in pairs()}
    first = next(iter(load_flows()))
    outcomes[VERSIONS[0], first] = Outcome("the server was asleep")
    drawn = draw(outcomes)
    assert drawn.count("✘") == 1
    assert drawn.endswith("[^1]: the server was asleep")


def test_a_section_is_written_between_its_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    copy = tmp_path / "page.md"
    copy.write_text(page.PAGE.read_text())
    monkeypatch.setattr(page, "PAGE", copy)
    before = page.read_section("system tests 0.28.2")
    page.put_section("flows", "something else")
    assert page.read_section("flows") == "something else"
    assert page.read_section("system tests 0.28.2") == before
    with pytest.raises(ValueError, match="no section 'weather'"):
        page.put_section("weather", "fine")


def test_versions_compare_as_versions_do() -> None:
    assert ordered("0.9.12") < ordered("0.15.2") < ordered("0.15.12")
    assert requirements("0.15.12")[0] == "wandb==0.15.12"
