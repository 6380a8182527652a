"""Each flow with each version of the client that has it."""

from __future__ import annotations

import os

import pytest

from tests.wandb_clients.conftest import Outcomes, outcome_of
from tests.wandb_clients.matrix import pairs
from tests.wandb_clients.versions import IN_EVERY_TEST

pytestmark = pytest.mark.clients


@pytest.mark.parametrize(
    ("version", "name"),
    [pair for pair in pairs() if pair[0] in IN_EVERY_TEST or os.environ.get("RUNYARD_ALL_CLIENTS")],
)
def test_flow_works(outcomes: Outcomes, version: str, name: str) -> None:
    outcome = outcome_of(outcomes, version, name)
    if outcome.trouble:
        pytest.fail(outcome.story or outcome.trouble, pytrace=False)
