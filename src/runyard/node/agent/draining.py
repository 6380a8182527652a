"""How an agent ends its work: asked to, before its job's end, or because it cannot go on."""

from __future__ import annotations

import signal
import time

from runyard.node.link.channel import DELIVERY_SECONDS
from runyard.schedulers.inside import this_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runyard.node.agent.claiming import Claiming
    from runyard.node.agent.work import Work
    from runyard.node.system.loop import Timer

# Asked to end, programs that can save get this long for it. Schedulers kill 30 s after they ask.
_SAVE_SECONDS = 15.0
# The scheduler may end a job some time after its end.
_OVERTIME_SECONDS = 120.0


class Draining:
    """`trouble`: why the agent cannot go on."""

    def __init__(self, work: Work, *, is_chained: bool) -> None:
        self._work = work
        # In a chain being cut off is the plan, and the links are counted: no tries are used up.
        self._cut = "go-on" if is_chained else "time"
        self._drained_at: float | None = None
        self._until_end: Timer | None = None
        self._is_terminated = False
        self.claiming: Claiming | None = None
        self.trouble: str | None = None

    def watch(self) -> None:
        """Heed signals, and the end of the job."""
        loop, end = self._work.loop, self._work.end
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.on_signal(number, self._on_signal)
        loop.on_signal(signal.SIGUSR1, lambda _number: self._finish())
        loop.on_signal(signal.SIGUSR2, lambda _number: self._on_job_end())
        self._await_end()
        if end.next_look is not None:
            loop.after(end.next_look, self._look_again)

    @property
    def seconds_to_stay(self) -> float:
        """Of a job that is pushed out: a script that ends by itself before that makes the job
        complete, and the scheduler does not put it back in the queue."""
        end = self._work.end
        if not end.is_pushed_out or end.end is None or self._is_terminated:
            return 0.0
        return max(0.0, end.seconds_left(time.time())) + _OVERTIME_SECONDS

    @property
    def is_for_another(self) -> bool:
        """Whether it could not go on, and a later one may: nobody asked for an end."""
        return self.trouble is not None and not self._is_terminated

    def wait_to_be_ended(self) -> None:
        signals: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, _frame: signals.append(number))
        until = time.monotonic() + self.seconds_to_stay
        while not signals and time.monotonic() < until:
            time.sleep(0.5)

    def drain(self) -> None:
        """Begin no more, and end what runs: its trials go back. The second time, at once."""
        again = self._drained_at is not None
        self._drained_at = time.monotonic()
        for attempt in self._work.at_work():
            if again:
                attempt.kill()
            else:
                attempt.leave("preempted", _SAVE_SECONDS if attempt.can_save() else 0.0)
        self._take_no_more(_SAVE_SECONDS)
        if again or not self._work.agent:
            self._give_up()

    def fail(self, trouble: str) -> None:
        self.trouble = trouble
        self.drain()

    def leave_trouble(self, trouble: str) -> None:
        """The server cannot be told of anything; what it should know is kept for another agent."""
        self.fail(trouble)
        self._give_up()

    def _finish(self) -> None:
        """Begin no more, and end when what runs has ended by itself."""
        again, self._work.is_finishing = self._work.is_finishing, True
        if self.claiming is not None and not again:
            self.claiming.ask_at_once()

    def _on_signal(self, number: int) -> None:
        self._is_terminated = self._is_terminated or number == signal.SIGTERM
        # The scheduler's one TERM may come twice: from itself, and from the job's script, which
        # hands it on.
        is_soon = (
            self._drained_at is not None and time.monotonic() - self._drained_at < _SAVE_SECONDS
        )
        if number != signal.SIGTERM or not is_soon or not this_job().is_job:
            self.drain()

    def _await_end(self) -> None:
        end = self._work.end
        if self._until_end is not None:
            self._until_end.cancel()
        if end.end is not None:
            seconds = max(0.0, end.seconds_left(time.time()) - end.grace)
            self._until_end = self._work.loop.after(seconds, self._on_job_end)

    def _look_again(self) -> None:
        """A person may have changed the job's time limit; another job may get its place."""
        end, work = self._work.end, self._work
        if end.look_again(time.time()) and not work.is_draining:
            self._await_end()
            moment = time.localtime(end.end)
            when = "never" if end.end is None else f"at {time.strftime('%H:%M:%S', moment)}"
            if end.is_pushed_out:
                work.report(f"another job gets this one's place {when}: programs save and end")
                self._save_and_end("preempted", max(0.0, end.seconds_left(time.time())))
            elif end.has_new_limit:
                work.report(f"the job's time limit was changed: it ends {when}")
        if end.next_look is not None and not end.is_pushed_out:
            work.loop.after(end.next_look, self._look_again)

    def _on_job_end(self) -> None:
        """The job is about to end, by the clock or by its own word: what runs is to save."""
        if self._work.is_draining:
            return
        end, now = self._work.end, time.time()
        is_time = end.is_near(now)
        seconds = max(0.0, end.seconds_left(now)) if is_time else end.grace
        self._save_and_end(self._cut if is_time else "preempted", seconds)

    def _save_and_end(self, cause: str, seconds: float) -> None:
        self._work.leaves_work = True
        last_call = min(self._work.end.last_call, seconds / 4)
        for attempt in self._work.at_work():
            attempt.leave(cause, seconds - last_call, last_call)
        self._take_no_more(seconds)

    def _take_no_more(self, seconds: float) -> None:
        again, self._work.is_draining = self._work.is_draining, True
        if self.claiming is not None and not again:
            self.claiming.ask_at_once()
        self._work.loop.after(seconds + DELIVERY_SECONDS, self._give_up)

    def _give_up(self) -> None:
        self._work.gave_up = True
