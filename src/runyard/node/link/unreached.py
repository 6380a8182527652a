"""A node that does not reach the server: said in the job's log, and left as a note for `status`."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time

from runyard.proof import LOOPBACK
from runyard.schedulers.inside import this_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from runyard.node.system.loop import Loop


# Said again so often, until it gives up.
_AGAIN = 60.0
_GIVE_UP = 900.0
_PROBE_SECONDS = 3.0


class Watch:
    """Of an agent that has not heard of the server for a while. `cancel`: now it has."""

    def __init__(
        self,
        loop: Loop,
        home: str,
        since: float,
        report: Callable[[str], None],
        give_up: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._home = home
        self._report = report
        self._give_up = give_up
        self._since = since
        self._patience = float(os.environ.get("RUNYARD_REACH_SECONDS") or _GIVE_UP)
        self._timer = loop.after(0.0, self._look)

    def cancel(self) -> None:
        self._timer.cancel()
        with contextlib.suppress(OSError):
            os.unlink(self._note)

    @property
    def _note(self) -> str:
        job = this_job()
        node = job.node or socket.gethostname()
        return f"{self._home}/unreached/{node}-{job.own_id or os.getpid()}.json"

    def _look(self) -> None:
        why = explain(self._home)
        waited = time.time() - self._since
        if waited >= self._patience:
            self._leave_note(why)
            self._give_up(f"{why}; gave up after {waited:.0f} s")
            return
        self._report(f"waits for the server: {why}")
        self._leave_note(why)
        self._timer = self._loop.after(min(_AGAIN, self._patience - waited + 0.01), self._look)

    def _leave_note(self, why: str) -> None:
        job = this_job()
        note = {
            "node": job.node or socket.gethostname(),
            "job": job.own_id,
            "why": why,
            "since": self._since,
            "told_at": time.time(),
        }
        with contextlib.suppress(OSError):  # The folder may be what is missing here.
            os.makedirs(os.path.dirname(self._note), mode=0o700, exist_ok=True)
            aside = f"{self._note}.{os.getpid()}"
            with open(aside, "w", encoding="utf-8") as file:
                json.dump(note, file)
            os.replace(aside, self._note)


def explain(home: str) -> str:
    """Why the server does not answer here, and what to do about it, in one line."""
    here = socket.gethostname()
    try:
        with open(f"{home}/server.json", encoding="utf-8") as file:
            discovery = json.load(file)
        url, listen, host = (
            str(discovery["url"]),
            str(discovery["listen"]),
            str(discovery["hostname"]),
        )
        name, _, port = url.split("//", 1)[1].rpartition(":")
    except FileNotFoundError:
        return (
            f"{here} sees no {home}/server.json: is the state folder on storage that the nodes "
            "share? Set RUNYARD_HOME to one that is, on the login node too"
        )
    except (OSError, ValueError, LookupError, TypeError) as error:
        return f"{here} cannot read {home}/server.json: {error}"
    if host != here and listen in LOOPBACK:
        return (
            f"the server listens on {host} alone: type `runyard server restart --listen cluster` "
            "there"
        )
    try:
        with socket.create_connection((name.strip("[]"), int(port)), _PROBE_SECONDS):
            pass
    except (OSError, ValueError) as error:
        return (
            f"{here} does not reach the server at {url} on {host} ({error}): a firewall may be "
            "between them; `runyard server submit` runs it on a compute node"
        )
    refusal = _refusal(url, discovery) if url.startswith("https:") else None
    if refusal:
        return (
            f"what answers {here} at {url} is not the server of {home} ({refusal}), and was sent "
            f"nothing: type `runyard server restart` on {host}"
        )
    return f"the server at {url} takes connections from {here} and does not answer"


def _refusal(url: str, discovery: dict[str, object]) -> str | None:
    from runyard.errors import ServerError
    from runyard.trust import why_refused

    try:
        return why_refused(url, str(discovery.get("authority") or ""), _PROBE_SECONDS)
    except ServerError as error:
        return error.what
