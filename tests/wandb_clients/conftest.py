"""The matrix runs beside the tests that look at it: some flows at a time, against one server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NoReturn

import pytest

from tests.conftest import end_server, isolate
from tests.wandb_clients.environments import MissingClient
from tests.wandb_clients.matrix import FLOWS, Outcome, Session

# A flow is mostly waiting or mostly starting Python; two at a time keep two cores busy. Those with
# agents wait for them most of the time.
_AT_ONCE, _WAITING_AT_ONCE = 2, 4

Outcomes = dict[tuple[str, str], "Future[Outcome]"]


@pytest.fixture(scope="session")
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Outcomes]:
    """How each chosen flow goes with each chosen version: on its way, or known."""
    chosen = [
        (str(item.callspec.params["version"]), str(item.callspec.params["name"]))
        for item in request.session.items
        if isinstance(item, pytest.Function) and "outcomes" in item.fixturenames
    ]
    folder = tmp_path_factory.mktemp("clients")
    with pytest.MonkeyPatch.context() as patch:
        isolate(folder, patch)
        session = Session(folder)
        try:
            with ThreadPoolExecutor(_AT_ONCE) as busy, ThreadPoolExecutor(_WAITING_AT_ONCE) as calm:
                pools = {pair: calm if FLOWS[pair[1]].waits else busy for pair in chosen}
                yield {pair: pool.submit(session.try_out, *pair) for pair, pool in pools.items()}
                busy.shutdown(cancel_futures=True)
                calm.shutdown(cancel_futures=True)
        finally:
            end_server(session.home)


def outcome_of(outcomes: Outcomes, version: str, name: str) -> Outcome:
    """Waits for it. Where the client cannot be had: a skip, or in CI a failure."""
    try:
        return outcomes[version, name].result()
    except MissingClient as missing:
        _skip_or_fail(str(missing))


def _skip_or_fail(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
