"""What an agent has in hand: its slots, what is still to be told, and whether it takes more.

The parts of an agent share it: the loop's wiring (`__main__`), claims (`claiming`), ends
(`end_reports`).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from runyard.node.agent.foreign_tracker import ForeignTracker
    from runyard.node.agent.gpu_time import GpuTime
    from runyard.node.agent.job_end import JobEnd
    from runyard.node.agent.job_log import JobLog
    from runyard.node.attempt.echo import Show
    from runyard.node.attempt.keeper import Keeper
    from runyard.node.attempt.trial_attempt import Attempt
    from runyard.node.attempt.warm_start import WarmStarts
    from runyard.node.devices.sampler_client import Sampling
    from runyard.node.link.channel import Answer, Channel
    from runyard.node.link.place import Server
    from runyard.node.system.loop import Loop

_KEY_PAUSE = 5.0


class Slot:
    """Room for one program at a time."""

    def __init__(self, index: int, channel: Channel) -> None:
        self.index = index
        self.channel = channel
        self.attempt: Attempt | None = None
        self.token: str | None = None
        """Of the claim that has no answer yet."""
        self.claims_with_end = False
        """That claim is part of the message of its last program's end."""
        self.is_preparing = False
        """It has a trial whose program has not begun."""
        self.rests = False
        """There is no room for its next program now."""
        self.is_closed = False


class Work:
    """Of one agent. `keeper` is whoever keeps its programs now; one that dies is replaced."""

    def __init__(
        self,
        loop: Loop,
        place: Server,
        talk: Channel,
        slots: list[Slot],
        *,
        spool: str,
        keeper: Keeper,
        end: JobEnd,
        count: int | None,
        home: str,
        folder: str | None,
        show: Show | None,
        launcher: list[str],
        url: str | None,
        tracker: ForeignTracker | None,
        report: Callable[[str], None],
    ) -> None:
        self.loop = loop
        self.place = place
        self.talk = talk
        self.slots = slots
        self.spool = spool
        self.keeper = keeper
        self.end = end
        self.count = count
        self.home = home
        """The state folder."""
        self.folder = folder
        self.show = show
        self.launcher = launcher
        """Words before every program's own: what brings it into its container."""
        self.url = url
        """Where programs find the server, where that is not its own address."""
        self.tracker = tracker
        """Where programs do not log to the server that hands out their trials."""
        self.recorded: set[str] = set()
        self.report = report
        self.agent = ""
        """The number under which the server knows us; empty before it does."""
        self.useful_at_first: float | None = None
        """For how long a program could work when the first trial was asked for."""
        self.taken: set[int] = set()
        self.failures: list[int] = []
        """The exit codes of trials that failed for good."""
        self.untold: set[Attempt] = set()
        self.unclear: set[Attempt] = set()
        self.is_draining = False
        """Running programs are being ended."""
        self.is_finishing = False
        """Running programs may finish; no new one starts."""
        self.leaves_work = False
        """It begins no more because its job ends, not because nothing is left."""
        self.is_for_nothing = False
        """Every trial is too long for such a job: another one would do no better."""
        self.gave_up = False
        self.sampling: Sampling | None = None
        self.helpers: set[int] = set()
        """Processes of ours that are no programs, to be waited for when they end."""
        self.warm_starts: WarmStarts | None = None
        self.gpu_time: GpuTime | None = None
        self.job_log: JobLog | None = None
        """Where it writes down which lines of a list have ended, if nobody else does."""

    @property
    def begins_no_more(self) -> bool:
        return self.is_draining or self.is_finishing

    def ask_key(self, on_key: Callable[[], None]) -> None:
        """Have the server make a key for us and our programs, in place of one it refuses."""

        def take(answer: Answer) -> None:
            if self.take_key(answer):
                on_key()
            else:
                self.loop.after(_KEY_PAUSE, lambda: self.ask_key(on_key))

        running = [{"trial": each.trial, "attempt": each.number} for each in self.held()]
        content = {"running": running, "wants_key": True}
        self.talk.post(f"/api/agents/{self.agent}/renew", content, take)

    def take_key(self, answer: Answer) -> bool:
        """Whether there is a key for programs, which may have come with this answer."""
        key = answer.json().get("key") if answer.is_good else None
        if key is not None:
            self.place.hand(key)
        return self.place.address is not None and self.place.address.handed is not None

    def count_gpus(self) -> None:
        """Before what runs changes, and before its usage is told."""
        if self.gpu_time is not None:
            self.gpu_time.look(self.held())

    def at_work(self) -> list[Attempt]:
        """Attempts whose program runs."""
        return [attempt for attempt in self.held() if attempt.runs]

    def held(self) -> list[Attempt]:
        """Attempts that are ours until their end is told."""
        attempts = [slot.attempt for slot in self.slots]
        return [attempt for attempt in attempts if attempt is not None]

    def is_over(self) -> bool:
        """Whether nothing runs, nothing is to come, and nothing is left to tell."""
        if self.unclear or self.held():
            return False
        if self.gave_up:
            return True
        # Who rests would hear the same as the others, of whom there always are some.
        are_closed = all(
            (slot.is_closed or slot.rests) and slot.channel.is_idle for slot in self.slots
        )
        return are_closed and not self.untold
