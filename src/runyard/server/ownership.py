"""The server's claim on its state folder, and the heartbeat that keeps it (see `owners.py`).

A server that finds another claim in place of its own ends at once, as if killed: it writes nothing
more.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import NoReturn

from runyard.home import Home, write_whole
from runyard.owners import (
    BEAT_DIGITS,
    BEATS_UNTIL_DEAD,
    LOOK_EVERY,
    Claim,
    boot_id,
    claim_path,
    heartbeat_seconds,
    lives,
    read_claim,
    read_text,
)

log = logging.getLogger(__name__)


class Owned(Exception):
    """A live server on another machine owns the folder."""

    def __init__(self, claim: Claim) -> None:
        super().__init__(f"process {claim.pid} on {claim.hostname} owns the folder")
        self.claim = claim


class Owner:
    """This process as the owner of a state folder whose `server.lock` it holds.

    `dead`: the moment of a claim that somebody has watched before us, and that stood still.
    """

    def __init__(
        self, home: Home, lost: Callable[[], NoReturn] | None = None, *, dead: str | None = None
    ) -> None:
        self._home = home
        self._dead = dead
        self._lost = lost or _end_now
        self._claim = Claim(secrets.token_hex(8), socket.gethostname(), boot_id(), os.getpid())
        self._beat_at = _now()
        self._is_failing = False
        self._ended = threading.Event()
        self._one_at_a_time = threading.Lock()
        self._heart = threading.Thread(target=self._keep_beating, name="heartbeat", daemon=True)

    def __enter__(self) -> Owner:
        """Take the folder, or raise `Owned`."""
        while True:
            with _taking_turns(self._home):
                claim = read_claim(self._home)
                # A claim of this machine is a dead server's: we hold its lock.
                is_elsewhere = claim is not None and not claim.is_of_this_machine
                if claim is None or claim.moment == self._dead or not is_elsewhere:
                    write_whole(claim_path(self._home), _text(self._claim))
                    break
            if lives(self._home, claim):
                raise Owned(claim)
            self._dead = claim.moment
        self._beat_at = _now()
        self._heart.start()
        if is_elsewhere:
            _replace_database(self._home)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._heart.join(heartbeat_seconds())  # It may wait for a file system that hangs.
        # On a full or vanished disk it stays, and is a dead server's claim.
        with contextlib.suppress(OSError), _taking_turns(self._home):
            claim = read_claim(self._home)
            if claim is not None and claim.token == self._claim.token:
                claim_path(self._home).unlink()

    def check(self) -> None:
        """Before each commit: after a long pause, make sure that nobody took the folder over."""
        if _now() - self._beat_at > heartbeat_seconds() * BEATS_UNTIL_DEAD / 2:
            self._beat()

    def _keep_beating(self) -> None:
        while not self._ended.wait(heartbeat_seconds()):
            self._beat()

    def _beat(self) -> None:
        with self._one_at_a_time:
            try:
                if not self._write_beat():
                    self._write_missing_claim()
            except OSError as error:
                if not self._is_failing:
                    log.error("cannot write the heartbeat of %s: %s", self._home.path, error)
                self._is_failing = True
                return
            self._is_failing = False
            self._beat_at = _now()

    def _write_beat(self) -> bool:
        """Change the number in our claim; False where there is no claim."""
        try:
            handle = os.open(claim_path(self._home), os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            # Through one handle: if the file is replaced in between, we write to nobody's file.
            content = os.read(handle, 4096)
            if self._claim.token.encode() not in content:
                log.error(
                    "another server took over %s (%s): this one ends and writes nothing more",
                    self._home.path,
                    content.decode(errors="replace").strip(),
                )
                self._lost()
            self._claim = replace(self._claim, beat=f"{int(self._claim.beat) + 1:0{BEAT_DIGITS}d}")
            os.pwrite(handle, _text(self._claim).encode(), 0)
            os.fsync(handle)
            return True
        finally:
            os.close(handle)

    def _write_missing_claim(self) -> None:
        """Somebody removed the file: nobody who takes over does that."""
        with _taking_turns(self._home):
            if read_claim(self._home) is None and not self._ended.is_set():
                write_whole(claim_path(self._home), _text(self._claim))


def _replace_database(home: Home) -> None:
    """Go on with copies of the database and its log, under their names.

    The server that was taken for dead may only be cut off from the file system, in the middle of a
    write that its kernel finishes when the network is back. It then writes to a file without name.
    """
    for path in (home.database.with_name(f"{home.database.name}-wal"), home.database):
        handle, aside = tempfile.mkstemp(dir=home.path, prefix=f".{path.name}.")
        os.close(handle)
        try:
            shutil.copyfile(path, aside)
            with Path(aside).open("rb") as file:
                os.fsync(file.fileno())
            Path(aside).replace(path)
        except FileNotFoundError:
            Path(aside).unlink()
        except OSError as error:
            # No room for a copy, say: the other server is most likely dead.
            log.warning("go on without a copy of %s: %s", path, error)
            Path(aside).unlink(missing_ok=True)


@contextlib.contextmanager
def _taking_turns(home: Home) -> Iterator[None]:
    """While nobody else, on any machine, replaces the claim.

    A file is made only where there is none, which every network file system does for all machines
    at once. Whoever dies in here leaves it behind: then it is removed after ten heartbeats.
    """
    turn, text = home.path / "owner.turn", secrets.token_hex(8)
    seen, since = None, time.monotonic()
    while True:
        try:
            handle = os.open(turn, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            break
        except FileExistsError:
            other = read_text(turn)
            if other != seen:
                seen, since = other, time.monotonic()
            elif time.monotonic() - since > heartbeat_seconds() * BEATS_UNTIL_DEAD:
                turn.unlink(missing_ok=True)
            time.sleep(LOOK_EVERY / 2)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        yield
    finally:
        if read_text(turn) in (text, ""):  # Empty on a full disk.
            turn.unlink(missing_ok=True)


def _text(claim: Claim) -> str:
    return json.dumps(asdict(claim)) + "\n"


def _now() -> float:
    """Seconds that also count while the machine is suspended."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def _end_now() -> NoReturn:
    logging.shutdown()
    os._exit(1)
