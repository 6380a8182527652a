"""Which lines of runyard an input reaches: one that reaches a new line is worth keeping."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import runyard

_SOURCES = str(Path(runyard.__file__).parent)
# A function that has shown nothing new for so many calls is looked at seldom.
_ENOUGH_CALLS = 60
_SELDOM = 40

Arc = tuple[CodeType, int, int]


class Coverage:
    """All steps from line to line that were ever seen."""

    def __init__(self) -> None:
        self.seen: set[Arc] = set()
        self._calls: dict[CodeType, int] = {}
        self._is_on = False

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Also for threads that begin in here; those look only while `watching`."""
        threading.settrace(self._enter)
        try:
            yield
        finally:
            threading.settrace(None)

    @contextmanager
    def watching(self) -> Iterator[None]:
        self._is_on = True
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(None)
            self._is_on = False

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if not self._is_on or not code.co_filename.startswith(_SOURCES):
            return None
        calls = self._calls[code] = self._calls.get(code, 0) + 1
        if calls > _ENOUGH_CALLS and calls % _SELDOM:
            return None
        last = frame.f_lineno

        def step(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal last
            arc = (code, last, frame.f_lineno)
            last = frame.f_lineno
            if arc not in self.seen:
                self.seen.add(arc)
                self._calls[code] = 0
            return step

        return step
