"""An agent among those of a sweep: it joins, says again and again that it lives, and leaves."""

from __future__ import annotations

import os
import socket
import time

from runyard.node.agent.job_end import whereabouts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from runyard.node.agent.hung import HungWatch
    from runyard.node.agent.occupancy import Occupancy
    from runyard.node.agent.work import Work
    from runyard.node.link.channel import Answer, Channel
    from runyard.node.link.unreached import Watch
    from runyard.node.system.loop import Timer

_RENEW_AT_MOST = 5.0
_FAREWELL_SECONDS = 2.0
_SERVER_SILENT_SECONDS = 10.0
# An agent that has nothing at work gives up after so long.
_PATIENCE = 300.0
_LOOK_EVERY = 2.0
# Said for the first time after so long, and then each time that it has lasted twice as long.
_FIRST_WORD = 4.0


class Membership:
    """`on_joined` is called with None, or with why the server does not take us."""

    def __init__(self, sweep: str, work: Work, on_joined: Callable[[str | None], None]) -> None:
        self._sweep = sweep
        self._work = work
        self._on_joined = on_joined
        self._lease = 60.0
        self._heard_at = time.monotonic()
        self._renewal: Timer | None = None
        self._unreached: Watch | Timer | None = None
        self._hung: HungWatch | None = None
        self.occupancy: Occupancy | None = None
        """How many programs run at a time, once that is known."""

    def join(self) -> None:
        payload = {
            "token": os.urandom(8).hex(),
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "slots": self._slots,
            "wants_key": True,
            **whereabouts(os.environ),
        }
        self._work.talk.post(f"/api/sweeps/{self._sweep}/agents", payload, self._has_joined)

    def watch_silence(self, fail: Callable[[str], None]) -> None:
        """Say so where the server does not answer, and fail where it never does."""
        since = time.time()
        # It may be starting, or moving.
        patience = float(os.environ.get("RUNYARD_REACH_SECONDS") or _SERVER_SILENT_SECONDS)

        def on_server_silent() -> None:
            from runyard.node.link.unreached import Watch  # Where the server is silent.

            work = self._work
            self._unreached = Watch(work.loop, work.home, since, work.report, fail)

        seconds = min(_SERVER_SILENT_SECONDS, patience)
        self._unreached = self._work.loop.after(seconds, on_server_silent)

    def leave(self, trouble: str | None) -> None:
        """Say farewell, and wait a moment for the answer."""
        work = self._work
        if not work.agent:
            return
        if self._renewal is not None:
            self._renewal.cancel()
        answers: list[Answer] = []
        why = trouble or ("asked to end" if work.begins_no_more else "nothing left to do")
        address = work.place.address
        has_key = address is not None and address.handed not in (None, address.key)
        content = {"why": why, "leaves_key": has_key}
        work.talk.post(f"/api/agents/{work.agent}/leave", content, answers.append)
        end = time.monotonic() + _FAREWELL_SECONDS
        while not answers and time.monotonic() < end:
            work.loop.turn(end - time.monotonic())

    @property
    def _slots(self) -> int:
        """In use at a time, as far as is known by now."""
        return len(self._work.slots) if self.occupancy is None else self.occupancy.slots

    def _has_joined(self, answer: Answer) -> None:
        if self._unreached is not None:
            self._unreached.cancel()
        if not answer.is_good:
            self._on_joined(answer.error)
            return
        if not self._work.take_key(answer):
            self._on_joined("the server is of an older version, and has no keys for programs: "
                            "`runyard server restart` where it runs")  # fmt: skip
            return
        agent = answer.json()
        self._work.agent, self._lease = str(agent["agent"]), float(agent["lease_seconds"])
        self._heard_at = time.monotonic()
        self._renew_later()
        self._look_for_later()
        self._on_joined(None)

    def _renew_later(self) -> None:
        self._renewal = self._work.loop.after(min(self._lease / 3, _RENEW_AT_MOST), self._renew)

    def _renew(self) -> None:
        work = self._work
        work.count_gpus()
        running = [
            {"trial": attempt.trial, "attempt": attempt.number, "usage": attempt.usage}
            for attempt in work.held()
        ]
        wants_key = work.place.address is not None and work.place.address.handed is None
        content: dict[str, Any] = {
            "running": running,
            "slots": self._slots,
            "wants_key": wants_key,
        }
        if self.occupancy is not None and self.occupancy.line:
            content["packing"] = self.occupancy.line
        work.talk.post(f"/api/agents/{work.agent}/renew", content, self._has_renewed)

    def _has_renewed(self, answer: Answer) -> None:
        self._renew_later()
        if not answer.is_good:
            return
        self._heard_at = time.monotonic()
        self._work.take_key(answer)
        lease = answer.json()
        self._lease = float(lease.get("lease_seconds") or self._lease)
        held = {(attempt.trial, attempt.number): attempt for attempt in self._work.held()}
        for stop in lease.get("stop", ()):
            attempt = held.get((stop["trial"], stop["attempt"]))
            if attempt is not None:
                # Lost: somebody else has the trial by now, and there must not be two.
                attempt.end("node" if stop["why"] == "lost" else stop["why"])
        if lease.get("over") or self._hung is not None:
            from runyard.node.agent.hung import HungWatch  # Where a run is over before its program.

            self._hung = self._hung or HungWatch(self._work.report)
            self._hung.look(lease.get("over", ()), held)

    def _look_for_later(self) -> None:
        """Cut off from the server, or suspended: does somebody else have a trial by now?"""
        self._work.loop.after(_RENEW_AT_MOST, self._look_for_later)
        if time.monotonic() - self._heard_at > self._lease:
            for attempt in self._work.at_work():
                if attempt.has_later():
                    self._work.report(f"{attempt.name} has gone on elsewhere: it ends here")
                    attempt.end("node")


class TroubleWatch:
    """A server that is reached and answers with its own trouble again and again: a bug, a full
    disk.

    What is asked is asked again, since most trouble passes. It is said in the log, and an agent
    whose programs have all ended does not hold its job's GPUs for it to the job's end: then
    `give_up` is called once, with what the server said.
    """

    def __init__(self, work: Work, give_up: Callable[[str], None]) -> None:
        self._work = work
        self._give_up = give_up
        self._patience = float(os.environ.get("RUNYARD_TROUBLE_SECONDS") or _PATIENCE)
        self._next_word = _FIRST_WORD
        self._look_later()

    def _look_later(self) -> None:
        self._work.loop.after(min(_LOOK_EVERY, self._patience / 2), self._look)

    def _look(self) -> None:
        channels: list[Channel] = [self._work.talk, *(slot.channel for slot in self._work.slots)]
        troubles = [channel.trouble for channel in channels if channel.trouble is not None]
        if not troubles:
            self._next_word = _FIRST_WORD
            self._look_later()
            return
        oldest = min(troubles, key=lambda trouble: trouble.since)
        lasted = time.monotonic() - oldest.since
        trouble = f"the server answers {oldest.path} with {oldest.status}: {oldest.error}"
        if lasted >= self._patience and not self._work.at_work():
            self._give_up(f"{trouble}; gave up after {lasted:.0f} s, and gives back what it had")
            return
        if lasted >= self._next_word:
            self._next_word = 2 * lasted
            self._work.report(f"{trouble}; it is asked again")
        self._look_later()
