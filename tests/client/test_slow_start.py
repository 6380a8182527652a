"""A server that takes long to start, after the command that started it was killed."""

from __future__ import annotations

import threading

import pytest

from runyard.client import discover
from runyard.home import Home, prepare
from runyard.locks import FolderLock

pytestmark = pytest.mark.live


def test_a_command_waits_for_a_server_that_has_not_said_yet_where_it_is(
    state_folder: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discover, "_SILENCE_SECONDS", 0.0)
    prepare(state_folder)
    with FolderLock(state_folder.server_lock) as starting:
        assert starting.acquire()
        threading.Timer(1.0, starting.release).start()
        assert discover.start_server(state_folder).started
