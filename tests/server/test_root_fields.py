"""Every root field that the newest client can ask for is answered, or refused by its name."""

from __future__ import annotations

import pytest

from runyard.server.people.permissions import Caller
from runyard.server.tracker import Tracker
from runyard.server.wandb_api.fields import refusals, root_fields
from runyard.server.wandb_api.graphql.request import Request
from tests.environments import Missing, skip_or_fail
from tests.wandb_clients import page
from tests.wandb_clients.root_fields import SECTION, answered_mutations, draw, read_roots
from tests.wandb_clients.versions import VERSIONS


@pytest.fixture(scope="module")
def roots() -> dict[str, set[str]]:
    try:
        return dict(read_roots(VERSIONS[0]))
    except Missing as missing:
        skip_or_fail(str(missing))


def test_every_mutation_is_answered_or_refused_by_name(roots: dict[str, set[str]]) -> None:
    assert len(roots["mutation"]) >= 65
    assert roots["mutation"] - answered_mutations() - refusals.MUTATIONS.keys() == set()
    assert not answered_mutations() & refusals.MUTATIONS.keys()


def test_every_query_is_answered_or_refused_by_name(
    roots: dict[str, set[str]], tracker: Tracker
) -> None:
    request = Request(tracker, Caller(1, "ada"), "http://here")
    known = root_fields.roots(request)["query"]("").keys()
    assert len(roots["query"]) >= 12
    assert roots["query"] - known == set()


def test_the_list_in_the_documentation_is_the_one_of_today(roots: dict[str, set[str]]) -> None:
    assert page.read_section(SECTION) == draw(VERSIONS[0], roots), (
        "write it anew: .venv/bin/python -m tests.wandb_clients.root_fields"
    )
