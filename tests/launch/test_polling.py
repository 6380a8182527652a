"""Who waits for jobs of runyard's own looks at files, and asks the scheduler every 15 s at most."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace

import pytest

from runyard.launch import building, node_cleaning
from runyard.launch.builds import Build
from runyard.schedulers.jobs import JobState, Tasks
from runyard.schedulers.protocol import POLL_SECONDS
from runyard.schedulers.slurm.states import read_state


class Clock:
    """Time that passes by waiting alone."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Queue:
    """A double of a scheduler: its jobs run, and it notes when it was asked."""

    def __init__(self, clock: Clock) -> None:
        self.questions: list[float] = []
        self._clock = clock

    def poll(self, ids: Iterable[str]) -> dict[str, JobState]:
        self.questions.append(self._clock.now)
        tasks = Tasks("7", 1, read_state("RUNNING"), reason=None, start=None, end=None, nodes=None)
        return {job: JobState(job, (tasks,)) for job in ids}

    def cancel(self, ids: Iterable[str]) -> None:
        assert not list(ids)


def gaps(moments: list[float]) -> list[float]:
    return [later - earlier for earlier, later in itertools.pairwise(moments)]


def test_a_build_in_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    queue = Queue(clock)
    monkeypatch.setattr(building, "cluster", lambda *_: queue)
    monkeypatch.setattr(building, "is_built", lambda _: clock.now >= 101)
    build = Build(kind="venv", source="x", folder=tmp_path / "env", script="", wanted=None)
    building._wait(build, "7", tmp_path, lambda _: None, clock.sleep)
    # The end of a build is seen by its file, soon.
    assert clock.now < 104
    assert len(queue.questions) > 3
    assert min(gaps(queue.questions)) >= POLL_SECONDS


def test_nodes_that_are_cleaned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    queue = Queue(clock)
    ids = iter("123")
    monkeypatch.setattr(node_cleaning, "cluster", lambda *_: queue)
    monkeypatch.setattr(node_cleaning, "own_script", lambda *_: "")
    monkeypatch.setattr(node_cleaning, "submit_own", lambda *_, **__: next(ids))
    monkeypatch.setattr(node_cleaning, "local_base", lambda _: "/tmp")
    monkeypatch.setattr(node_cleaning, "time", SimpleNamespace(monotonic=lambda: clock.now))

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        if clock.now == 50:
            for job in "123":
                (tmp_path / f"{job}.log").write_text('{"before": [], "after": [], "held": []}\n')

    cleaned = node_cleaning.clean_nodes(
        SimpleNamespace(profile=None),  # type: ignore[arg-type]
        SimpleNamespace(words=lambda *_: []),  # type: ignore[arg-type]
        ["n1", "n2", "n3"], tmp_path, environ={}, dry_run=False, seconds=300, sleep=sleep,
    )  # fmt: skip
    assert [one.said for one in cleaned] == [{"before": [], "after": [], "held": []}] * 3
    assert clock.now == 50
    assert len(queue.questions) == 3
    assert min(gaps(queue.questions)) >= POLL_SECONDS
