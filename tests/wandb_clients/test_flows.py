"""Each flow with each version of the client that has it."""

from __future__ import annotations

import pytest

from tests.wandb_clients.conftest import Outcomes, outcome_of
from tests.wandb_clients.matrix import pairs

pytestmark = pytest.mark.clients


@pytest.mark.parametrize(("version", "name"), pairs())
def test_flow_works(outcomes: Outcomes, version: str, name: str) -> None:
    outcome = outcome_of(outcomes, version, name)
    if outcome.trouble:
        pytest.fail(outcome.story or outcome.trouble, pytrace=False)
