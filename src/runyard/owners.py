"""Which server owns a state folder, also if file locks do not work between machines.

On some network mounts (Lustre `localflock`, BeeGFS, NFS with `local_lock`), `flock` works on one
machine only. So the server also writes a claim into the folder and changes a number in it every few
seconds, its heartbeat. A process that wants to start a server on another machine watches that
number by its own clock; the clocks of two machines are never compared. A claim is replaced only if
the number has not changed for ten heartbeats and the old address does not answer. This module reads
claims; `server/ownership.py` writes them.
"""

from __future__ import annotations

import errno
import http.client
import json
import os
import socket
import time
from dataclasses import dataclass, fields
from pathlib import Path

from runyard.home import Discovery, Home, read_discovery
from runyard.proof import Question
from runyard.trust import open_http

HEARTBEAT = "RUNYARD_HEARTBEAT_SECONDS"
"""Environment variable: seconds between two heartbeats, for tests."""
_DEFAULT_HEARTBEAT = 3.0
BEATS_UNTIL_DEAD = 10
LOOK_EVERY = 0.1
_ANSWER_SECONDS = 3.0
# The heartbeat is overwritten in place, so its number of digits is fixed.
BEAT_DIGITS = 12


@dataclass(frozen=True)
class Claim:
    """The claim that the owner of a state folder writes."""

    token: str
    hostname: str
    boot: str
    pid: int
    beat: str = "0" * BEAT_DIGITS

    @property
    def is_of_this_machine(self) -> bool:
        """Whether its server started on this machine since the last boot, so that file locks show
        if it lives."""
        return (self.hostname, self.boot) == (socket.gethostname(), boot_id())

    @property
    def moment(self) -> str:
        """This claim at this heartbeat."""
        return f"{self.token}:{self.beat}"

    def is_of(self, discovery: Discovery) -> bool:
        """Whether `discovery` describes the server of this claim."""
        return (self.hostname, self.pid) == (discovery.hostname, discovery.pid)


def heartbeat_seconds() -> float:
    return float(os.environ.get(HEARTBEAT) or _DEFAULT_HEARTBEAT)


def claim_path(home: Home) -> Path:
    return home.path / "owner.json"


def read_claim(home: Home) -> Claim | None:
    """The claim on the folder; None if there is none."""
    for last in (False, False, True):
        try:
            record = json.loads(claim_path(home).read_bytes())
            return Claim(**{field.name: record[field.name] for field in fields(Claim)})
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, TypeError, LookupError):  # Damaged: counts as no claim.
            if last:
                return None
        except OSError as error:
            if last or error.errno != errno.ESTALE:  # NFS: replaced while it was read.
                raise
        time.sleep(LOOK_EVERY / 2)
    return None


def owner_elsewhere(home: Home, seconds: float | None = None) -> Claim | None:
    """The claim of a live server on another machine; watches it for at most `seconds`."""
    claim = read_claim(home)
    if claim is None or claim.is_of_this_machine:
        return None
    return claim if lives(home, claim, seconds) else None


def lives(home: Home, claim: Claim, seconds: float | None = None) -> bool:
    """Whether the server of a claim answers, or its heartbeat continues."""
    if _answers(home, claim):
        return True
    end = time.monotonic() + (
        heartbeat_seconds() * BEATS_UNTIL_DEAD if seconds is None else seconds
    )
    while time.monotonic() < end:
        time.sleep(LOOK_EVERY)
        now = read_claim(home)
        if now is None or now.token != claim.token:
            return False
        if now.beat != claim.beat:
            return True
    return False


def _answers(home: Home, claim: Claim) -> bool:
    """Whether a server that knows the key answers at the address in the folder."""
    discovery = read_discovery(home)
    if discovery is None or not claim.is_of(discovery):
        return False
    question = Question(discovery.key, discovery.url)
    connection = open_http(discovery.url, discovery.authority, _ANSWER_SECONDS)
    try:
        connection.request("GET", question.path)
        answer = connection.getresponse().read(4096)
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return question.is_answered_by(answer)


def read_text(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None


def boot_id() -> str:
    """Changes with each boot of the machine; empty if the system has none."""
    return (read_text(Path("/proc/sys/kernel/random/boot_id")) or "").strip()
