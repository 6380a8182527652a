"""One world a file of tests: building it takes longer than trying a door."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from runyard.home import Home, prepare
from runyard.server.app import create_app
from runyard.server.tracker import Tracker
from tests.doors.world import World, build
from tests.server.asgi import KEY, Client


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    home = Home(tmp_path_factory.mktemp("doors") / "state")
    prepare(home)
    tracker = Tracker(home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOGNAME", "ada")
        tracker.open(KEY)
    client = Client(create_app(tracker, stop=lambda: None))
    logging.disable(logging.WARNING)
    yield build(client, tracker)
    logging.disable(logging.NOTSET)
    tracker.close()
    client.close()
