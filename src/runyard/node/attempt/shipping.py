"""The console on its way to the server: from the copy on disk, as fast as the server takes it.

The copy is the truth until the server has it. A server that is away is waited for (and started
again by `revive`, where that is possible); nothing of the program waits for it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from runyard.client.api import Api, Run
from runyard.errors import NotFoundError, RunyardError, StateError

_SEND_EVERY = 1.0
_SIGN_OF_LIFE_EVERY = 20.0
_SEND_AT_ONCE = 1 << 20
_LONGEST_PAUSE = 5.0


class Shipper:
    """Sends one attempt's console to the server from a thread of its own."""

    def __init__(
        self,
        api: Api,
        run: Run,
        attempt: int,
        copy: Path,
        revive: Callable[[], Api | None],
        on_stop: Callable[[], None] = lambda: None,
    ) -> None:
        self._api = api
        self._run = run
        self._attempt = attempt
        self._copy = copy
        self._revive = revive
        self._on_stop = on_stop
        self._stopping = False
        self._sent = 0
        self._heard_at = time.monotonic()
        self._wake = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name="shipper", daemon=True)
        self.trouble: RunyardError | None = None

    def start(self) -> None:
        self._thread.start()

    def finish(self, exit_code: int, ended_at: float, seconds: float) -> Run | None:
        """Send the rest and the end. None if the server could not be reached in that time."""
        self._ending.set()
        self._wake.set()
        end = time.monotonic() + seconds
        self._thread.join(seconds)
        while not self._thread.is_alive():
            try:
                if self._send_new():
                    continue
                return self._api.end_attempt(self._run, self._attempt, exit_code, ended_at)
            except NotFoundError as error:
                self.trouble = error  # The run was deleted; there is nobody to wait for.
                return None
            except RunyardError as error:
                self.trouble = error
                if time.monotonic() >= end:
                    return None
                self._try_to_revive()
                time.sleep(0.2)
        return None

    def _work(self) -> None:
        pause = _SEND_EVERY
        while not self._ending.is_set():
            self._wake.wait(pause)
            try:
                while self._send_new() and not self._ending.is_set():
                    pass
                pause = _SEND_EVERY
            except NotFoundError as error:
                self.trouble = error
                return
            except RunyardError as error:
                self.trouble = error
                self._try_to_revive()
                pause = min(pause * 1.5, _LONGEST_PAUSE)

    def _send_new(self) -> bool:
        """Send the next piece of the copy; says whether there may be more."""
        data, size = self._read_copy()
        if not data and time.monotonic() - self._heard_at < _SIGN_OF_LIFE_EVERY:
            return False
        # The server says what it has: that is where to go on, whatever was sent before.
        received = self._api.send_console(self._run, self._attempt, self._sent, data)
        self._sent = received["stored"]
        if received.get("stop") and not self._stopping:
            self._stopping = True
            self._on_stop()
        self._heard_at = time.monotonic()
        return self._sent < size

    def _read_copy(self) -> tuple[bytes, int]:
        """What is not sent yet, up to a limit; and how long the copy is."""
        try:
            with self._copy.open("rb") as file:
                file.seek(self._sent)
                return file.read(_SEND_AT_ONCE), os.fstat(file.fileno()).st_size
        except OSError as error:
            # Somebody removed it. The program's end can still be told.
            self.trouble = StateError(f"cannot read {self._copy}", said=error.strerror)
            return b"", self._sent

    def _try_to_revive(self) -> None:
        try:
            self._api = self._revive() or self._api
        except RunyardError as error:
            self.trouble = error
