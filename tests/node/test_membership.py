"""What an agent does while it does not hear the server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runyard.node.agent.membership import Membership
from runyard.node.attempt.trial_attempt import Attempt
from runyard.node.link.channel import Answer
from runyard.save_protocol import attempt_note, take_folder

LEASE = 60.0


class Held:
    """An attempt that looks into its trial's folder and notes how it was ended."""

    has_later = Attempt.has_later

    def __init__(self, folder: Path) -> None:
        self.trial, self.number, self.name, self.usage = 1, 1, "t1", dict[str, Any]()
        self.workspace = SimpleNamespace(checkpoints=str(folder), run_id="r1")
        self.ended: list[str] = []
        self.end = self.ended.append


class Desk:
    """An agent that has joined, with one attempt; `pass_time` as the loop and the clock do."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = time.monotonic()
        monkeypatch.setattr("runyard.node.agent.membership.time.monotonic", lambda: self.now)
        self.held = Held(folder)
        self.timers: list[Callable[[], None]] = []
        self.answers: list[Callable[[Answer], None]] = []
        work: Any = SimpleNamespace(
            loop=SimpleNamespace(after=lambda _seconds, call: self.timers.append(call)),
            talk=SimpleNamespace(post=lambda _path, _content, take: self.answers.append(take)),
            place=SimpleNamespace(address=None), report=print, agent="", slots=[],
            held=lambda: [self.held], at_work=lambda: [self.held], count_gpus=lambda: None,
            take_key=lambda _answer: True,
        )  # fmt: skip
        Membership("1", work, lambda _failure: None).join()
        self.hear(agent=9)

    def hear(self, **content: object) -> None:
        lease = {"lease_seconds": LEASE, **content}
        self.answers.pop()(Answer(200, json.dumps(lease).encode()))

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        due, self.timers = self.timers, []
        for call in due:
            call()


@pytest.mark.parametrize(("later", "ended"), [(2, ["node"]), (1, [])])
def test_cut_off_it_ends_what_has_gone_on_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: int, ended: list[str]
) -> None:
    """The server cannot say so. The folder, which both nodes share, does."""
    take_folder(str(tmp_path), "r1", later)
    desk = Desk(tmp_path, monkeypatch)
    desk.pass_time(LEASE + 1)
    assert desk.held.ended == ended


def test_while_the_server_is_heard_it_alone_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_folder(str(tmp_path), "r1", 2)
    desk = Desk(tmp_path, monkeypatch)
    for _ in range(3):
        desk.pass_time(LEASE / 2)
        desk.hear()
    assert desk.held.ended == []


def test_anothers_run_and_an_unreadable_note_say_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_folder(str(tmp_path), "another", 2)
    desk = Desk(tmp_path, monkeypatch)
    desk.pass_time(LEASE + 1)
    note = Path(attempt_note(str(tmp_path)))
    note.write_bytes(b"\xff[")
    desk.pass_time(1)
    note.write_text("[]")
    desk.pass_time(1)
    assert desk.held.ended == []
