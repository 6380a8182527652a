"""Each flow with each version of the client that has it."""

from __future__ import annotations

import pytest

from tests.wandb_clients.conftest import Outcomes, outcome_of
from tests.wandb_clients.matrix import load_flows, pairs

pytestmark = pytest.mark.clients


@pytest.mark.parametrize(("version", "name"), pairs())
def test_flow_works(outcomes: Outcomes, version: str, name: str) -> None:
    outcome = outcome_of(outcomes, version, name)
    part = load_flows()[name].to_come
    if outcome.trouble and part:
        pytest.xfail(f"{part}, to come: {outcome.trouble}")
    if outcome.trouble:
        pytest.fail(outcome.story or outcome.trouble, pytrace=False)
