"""The agent: takes trials of a sweep from the server and runs them, several at a time if asked.

    python -m runyard.node.agent --sweep KEY --slots 2

Asked to end (TERM, INT, HUP), it tells its programs to save and end, and hands their trials back;
asked a second time, it kills them. Before its job's end, or told by USR2 that it is near, it does
the same with more time. Whatever happens to it, none of its programs is left behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time

from runyard.node.channel import Channel
from runyard.node.delivery import deliver_leftovers, end_message
from runyard.node.jobend import JobEnd, find_end
from runyard.node.keeper import start_keeper
from runyard.node.launching import launch
from runyard.node.loop import READ, Loop
from runyard.node.place import Place
from runyard.node.processes import CLIENT_SECONDS
from runyard.node.whereabouts import whereabouts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from runyard.node.attempts import Attempt, Setting
    from runyard.node.channel import Answer
    from runyard.node.echo import Show
    from runyard.node.loop import Timer

_WAIT_SECONDS = 20.0
_ANSWER_SECONDS = 30.0
_RENEW_AT_MOST = 5.0
_REST_GRACE_SECONDS = 5.0
_DELIVERY_SECONDS = 30.0
_FAREWELL_SECONDS = 2.0
_PAUSE_AFTER_REFUSAL = 2.0
# Asked to end, programs that can save get this long for it. Slurm kills 30 s after it asks.
_SAVE_SECONDS = 15.0


class Slot:
    """Room for one program at a time."""

    def __init__(self, index: int, channel: Channel) -> None:
        self.index = index
        self.channel = channel
        self.attempt: Attempt | None = None
        self.token: str | None = None
        """Of the claim that has no answer yet."""
        self.is_closed = False


class Agent:
    def __init__(
        self,
        sweep: str,
        home: str,
        *,
        slots: int = 1,
        count: int | None = None,
        folder: str | None = None,
        show: Show | None = None,
        end: JobEnd | None = None,
        report: Callable[[str], None] = print,
        launcher: Sequence[str] = (),
        exits_as_trials: bool = False,
    ) -> None:
        self._launcher = list(launcher)
        self._exits_as_trials = exits_as_trials
        self._failures: list[int] = []
        self._loop = Loop()
        self._place = Place(home, self._spawn)
        self._spool = f"{home}/spool"
        self._sweep = sweep
        self._count = count
        self._folder = folder
        self._show = show
        self._end = end or JobEnd(None, time.time())
        self._typical: float | None = None
        self._saves = False
        self._report = report
        self._talk = Channel(self._loop, self._place)
        self._slots = [Slot(index, Channel(self._loop, self._place)) for index in range(slots)]
        self._agent = ""
        self._lease = 60.0
        self._renewal: Timer | None = None
        self._untold: set[Attempt] = set()
        self._unclear: set[Attempt] = set()
        self._taken: set[int] = set()
        self._helpers: set[int] = set()
        self._is_draining = False
        self._is_asked = False
        self._gave_up = False
        self._trouble: str | None = None
        self._keeper = start_keeper(
            self._spool, lambda spool: deliver_leftovers(spool, self._place)
        )

    def run(self) -> int:
        """Until the sweep has no more for us; the exit code."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._loop.on_signal(number, lambda _number: self.drain())
        self._loop.on_signal(signal.SIGUSR1, lambda _number: self.finish())
        self._loop.on_signal(signal.SIGUSR2, lambda _number: self._hear_of_end())
        self._loop.on_signal(signal.SIGCHLD, lambda _number: self._reap())
        left = self._end.seconds_left(time.time())
        if self._end.end is not None:
            self._loop.after(max(0.0, left - self._end.grace), self._hear_of_end)
        self._join()
        while not self._is_over():
            self._loop.turn()
        self._say_farewell()
        self._keeper.dismiss()
        if self._show is not None:
            self._show.close()
        if self._trouble is not None:
            print(f"runyard: {self._trouble}", file=sys.stderr, flush=True)
            return 1
        return self._exit_code()

    def _exit_code(self) -> int:
        """The one trial's own code if it failed; 1 where some of several did."""
        if not self._exits_as_trials or not self._failures:
            return 0
        code = self._failures[0] if len(self._taken) == 1 else 1
        return code if code > 0 else 128 - code

    def hold_on_to(self, leash: int) -> None:
        """End when this descriptor is closed at its other end: who started us is gone."""
        os.set_inheritable(leash, False)

        def let_go(_events: int) -> None:
            self._loop.forget(leash)
            self.drain()

        self._loop.watch(leash, READ, let_go)

    def finish(self) -> None:
        """Begin no more, and end when what runs has ended by itself."""
        self._count = 0

    def drain(self) -> None:
        """Begin no more, and end what runs: its trials go back. The second time, at once."""
        again, self._is_asked = self._is_asked, True
        for attempt in self._at_work():
            if again:
                attempt.kill()
            else:
                attempt.leave("preempted", _SAVE_SECONDS if attempt.can_save() else 0.0)
        self._take_no_more(_SAVE_SECONDS)
        if again or not self._agent:
            self._give_up()

    def _hear_of_end(self) -> None:
        """The job is about to end, by the clock or by its own word: what runs is to save."""
        if self._is_draining:
            return
        now = time.time()
        is_time = self._end.is_near(now)
        seconds = max(0.0, self._end.seconds_left(now)) if is_time else self._end.grace
        last_call = min(self._end.last_call, seconds / 4)
        for attempt in self._at_work():
            attempt.leave("time" if is_time else "preempted", seconds - last_call, last_call)
        self._take_no_more(seconds)

    def _at_work(self) -> list[Attempt]:
        found = [slot.attempt for slot in self._slots]
        return [attempt for attempt in found if attempt is not None and attempt.runs]

    def _take_no_more(self, seconds: float) -> None:
        again, self._is_draining = self._is_draining, True
        for slot in self._slots:
            if slot.token is not None and not again:
                # The server may have handed out a trial that we have not heard of: ask, and
                # give it back.
                slot.channel.take_back_last()
                self._claim(slot, slot.token, wait=0)
        self._loop.after(seconds + _DELIVERY_SECONDS, self._give_up)

    def _join(self) -> None:
        payload = {
            "token": os.urandom(8).hex(),
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "slots": len(self._slots),
            **whereabouts(os.environ),
        }
        self._talk.post(f"/api/sweeps/{self._sweep}/agents", payload, self._has_joined)

    def _has_joined(self, answer: Answer) -> None:
        if not answer.is_good:
            self._fail(answer.error)
            return
        told = answer.json()
        self._agent, self._lease = str(told["agent"]), float(told["lease_seconds"])
        self._typical = told.get("typical_seconds")
        self._renew_later()
        for slot in self._slots:
            self._ask(slot)
        # While the server looks for a trial: what it needs is not part of our start.
        import subprocess  # noqa: F401

        import runyard.node.attempts  # noqa: F401

    def _ask(self, slot: Slot) -> None:
        """Ask for the slot's next trial, unless enough were taken."""
        asking = sum(other.token is not None for other in self._slots)
        enough = self._count is not None and len(self._taken) + asking >= self._count
        if self._is_draining or enough or self._is_too_late():
            slot.is_closed = True
            return
        self._claim(slot, os.urandom(8).hex(), wait=_WAIT_SECONDS)

    def _is_too_late(self) -> bool:
        """Whether what would begin now could neither finish in this job nor be saved."""
        now = time.time()
        if not self._end.is_too_late_for(self._typical, now, saves=self._saves):
            return False
        left = max(0.0, self._end.seconds_left(now))
        self._report(f"{_clock()} begins no more: its job ends in {left:.0f} s")
        return True

    def _claim(self, slot: Slot, token: str, wait: float) -> None:
        slot.token = token
        slot.channel.post(
            f"/api/agents/{self._agent}/claim",
            {"token": token, "wait": wait},
            lambda answer: self._take(slot, token, answer),
            seconds=wait + _ANSWER_SECONDS,
        )

    def _take(self, slot: Slot, token: str, answer: Answer) -> None:
        told: dict[str, Any] = answer.json() if answer.is_good else {"do": "refused"}
        if told["do"] == "run":
            slot.token = None
            self._taken.add(told["trial"]["number"])
            if self._is_draining:
                self._give_back(slot, told)
            else:
                self._begin(slot, told)
        elif told["do"] == "wait" and not self._is_draining:
            slot.token = None
            self._ask(slot)
        elif told["do"] == "refused" and answer.status not in (401, 403, 404):
            self._loop.after(
                _PAUSE_AFTER_REFUSAL, lambda: self._claim(slot, token, wait=_WAIT_SECONDS)
            )
        else:
            if told["do"] == "refused":
                self._fail(answer.error)
            slot.token = None
            slot.is_closed = True

    def _give_back(self, slot: Slot, told: dict[str, Any]) -> None:
        slot.is_closed = True
        content = {
            "trial": told["trial"]["number"],
            "number": told["attempt"],
            "exit_code": -int(signal.SIGTERM),
            "cause": "preempted",
        }
        path = f"/api/agents/{self._agent}/ends"
        slot.channel.post(path, end_message(content), lambda _answer: None)

    def _begin(self, slot: Slot, told: dict[str, Any]) -> None:
        from runyard.node.attempts import Setting
        from runyard.node.goingon import go_back

        found = self._place.found
        assert found is not None
        folder = self._folder or os.getcwd()  # noqa: PTH109
        environ = dict(os.environ)
        if self._end.deadline is not None:
            environ["RUNYARD_DEADLINE"] = f"{self._end.deadline:.3f}"
        try:
            setting = Setting(told, found, folder, environ, self._launcher)
        except OSError as error:
            self._cannot_run(slot, told, error)
            return

        def is_ready() -> None:
            if self._is_draining:
                self._give_back(slot, told)
            else:
                self._launch(slot, told, setting)

        go_back(slot.channel, self._agent, told, setting, is_ready)

    def _launch(self, slot: Slot, told: dict[str, Any], setting: Setting) -> None:
        from runyard.node.attempts import Attempt

        attempt = Attempt(
            self._loop,
            self._talk,
            told,
            self._spool,
            on_end=lambda ended: self._has_ended(slot, ended),
            on_told=self._untold.discard,
        )
        slot.attempt = attempt
        self._untold.add(attempt)
        again = f" (attempt {attempt.number})" if attempt.number > 1 else ""
        self._report(f"{_clock()} {attempt.name} began{again}")
        try:
            if self._show is not None:
                attempt.echo = self._show.echo(attempt.name, setting.trial_folder)
            attempt.begin(setting, self._agent, self._keeper)
        except OSError as error:
            slot.attempt = None
            self._untold.discard(attempt)
            self._cannot_run(slot, told, error)

    def _cannot_run(self, slot: Slot, told: dict[str, Any], error: OSError) -> None:
        # A full disk, no more processes: nothing that another trial would change.
        self._give_back(slot, told)
        self._fail(f"{socket.gethostname()} cannot run {told['trial']['name']}: {error}")

    def _has_ended(self, slot: Slot, attempt: Attempt) -> None:
        self._saves = self._saves or attempt.has_saved()
        if attempt.exit_code:
            # It may go on elsewhere at once: what it logged is to be there before.
            self._clear_up(attempt, lambda: self._tell_end(slot, attempt))
        else:
            self._tell_end(slot, attempt)
            self._clear_up(attempt, lambda: None)

    def _tell_end(self, slot: Slot, attempt: Attempt) -> None:
        slot.attempt = None
        path = f"/api/agents/{self._agent}/ends"
        if attempt.exit_code:
            attempt.hurry(slot.channel)  # Its last words say why it failed: first these.
        # Two requests in a row, without waiting between: the end, and the claim for the next.
        slot.channel.post(
            path, end_message(attempt.record.content), lambda answer: self._is_told(attempt, answer)
        )
        self._ask(slot)

    def _is_told(self, attempt: Attempt, answer: Answer) -> None:
        if answer.status in (401, 403):
            self._fail(answer.error)  # What we know is kept, for whoever may tell it.
            return
        attempt.is_told("end")
        told = answer.json() if answer.is_good else {}
        self._typical = told.get("typical_seconds", self._typical)
        trial = told.get("trial")
        if trial is not None and trial["state"] == "failed":
            self._failures.append(attempt.exit_code or 1)
        self._report(f"{_clock()} {end_line(attempt, trial)}")

    def _clear_up(self, attempt: Attempt, then: Callable[[], None]) -> None:
        """End what a program left running behind it, then call; the keeper forgets it only then."""
        self._unclear.add(attempt)
        began = time.monotonic()

        def look() -> None:
            waited = time.monotonic() - began
            late = waited >= _REST_GRACE_SECONDS
            # Somebody else has a trial that is lost: its rows are not ours to send.
            is_over = waited >= CLIENT_SECONDS or self._gave_up or attempt.ending == "node"
            hurry = signal.SIGKILL if is_over else 0
            if attempt.end_rest(signal.SIGKILL if late else signal.SIGTERM, hurry):
                self._loop.after(0.1 if late else 0.05, look)
            else:
                self._unclear.discard(attempt)
                self._keeper.ended(attempt.token)
                then()

        look()

    def _renew_later(self) -> None:
        self._renewal = self._loop.after(min(self._lease / 3, _RENEW_AT_MOST), self._renew)

    def _renew(self) -> None:
        running = [
            {"trial": slot.attempt.trial, "attempt": slot.attempt.number}
            for slot in self._slots
            if slot.attempt is not None  # Ours until its end is told.
        ]
        path = f"/api/agents/{self._agent}/renew"
        self._talk.post(path, {"running": running}, self._has_renewed)

    def _has_renewed(self, answer: Answer) -> None:
        self._renew_later()
        if not answer.is_good:
            return
        told = answer.json()
        self._lease = float(told.get("lease_seconds") or self._lease)
        for stop in told.get("stop", ()):
            for slot in self._slots:
                attempt = slot.attempt
                if attempt is not None and (attempt.trial, attempt.number) == (
                    stop["trial"],
                    stop["attempt"],
                ):
                    self._stop(attempt, stop["why"])

    def _stop(self, attempt: Attempt, why: str) -> None:
        # Lost: somebody else has the trial by now, and there must not be two.
        attempt.end("node" if why == "lost" else why)

    def _reap(self) -> None:
        for slot in self._slots:
            if slot.attempt is not None:
                slot.attempt.look()
        for helper in list(self._helpers):
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(helper, os.WNOHANG)[0]:
                    self._helpers.discard(helper)
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(self._keeper.pid, os.WNOHANG)[0]:
                self._replace_keeper()

    def _replace_keeper(self) -> None:
        self._keeper.dismiss()
        self._keeper = start_keeper(
            self._spool, lambda spool: deliver_leftovers(spool, self._place)
        )
        for slot in self._slots:
            if slot.attempt is not None and slot.attempt.runs:
                slot.attempt.keep_with(self._keeper)

    def _spawn(self, words: list[str]) -> None:
        nothing = os.open(os.devnull, os.O_RDWR)
        self._helpers.add(launch(words, os.environ, None, nothing))
        os.close(nothing)

    def _fail(self, trouble: str) -> None:
        self._trouble = trouble
        self.drain()

    def _give_up(self) -> None:
        self._gave_up = True

    def _is_over(self) -> bool:
        if self._unclear or any(slot.attempt is not None for slot in self._slots):
            return False
        if self._gave_up:
            return True
        are_closed = all(slot.is_closed and slot.channel.is_idle for slot in self._slots)
        return are_closed and not self._untold

    def _say_farewell(self) -> None:
        if not self._agent:
            return
        if self._renewal is not None:
            self._renewal.cancel()
        answered: list[Answer] = []
        why = "asked to end" if self._is_draining else "nothing left to do"
        self._talk.post(f"/api/agents/{self._agent}/leave", {"why": why}, answered.append)
        end = time.monotonic() + _FAREWELL_SECONDS
        while not answered and time.monotonic() < end:
            self._loop.turn(end - time.monotonic())


def end_line(attempt: Attempt, trial: dict[str, Any] | None) -> str:
    """How an attempt ended, in one line."""
    code = attempt.exit_code or 0
    how = f"exit code {code}" if code >= 0 else f"signal {-code}"
    state = trial["state"] if trial else ("ended" if code == 0 else "failed")
    cause = (trial.get("cause") if trial else None) or attempt.cause
    if trial and trial["state"] in ("waiting", "paused"):
        state = f"goes back ({cause or how})"
    elif code:
        state = f"{state} ({how if cause in (None, 'program', 'signal') else cause})"
    value = trial.get("value") if trial else None
    shown = f": {value:.6g}" if isinstance(value, int | float) else ""
    return f"{attempt.name} {state} after {attempt.seconds:.1f} s{shown}"


def _clock() -> str:
    return time.strftime("%H:%M:%S")


def main(words: list[str] | None = None) -> int:
    options = _read_options(sys.argv[1:] if words is None else words)
    job = _read_job(options)
    home = os.path.abspath(  # noqa: PTH100
        os.path.expanduser(os.environ.get("RUNYARD_HOME") or "~/.runyard")  # noqa: PTH111
    )
    report: Callable[[str], None] = _print if "quiet" not in options else lambda _line: None
    agent = Agent(
        options["sweep"],
        home,
        slots=int(options.get("slots", "1")),
        count=int(options["count"]) if "count" in options else None,
        folder=options.get("folder"),
        show=_shown(options),
        end=_read_end(options),
        report=report,
        launcher=job.get("launcher", ()),
        exits_as_trials=job.get("exit") == "trials",
    )
    if "leash" in options:
        agent.hold_on_to(int(options["leash"]))
    code = agent.run()
    if "ended" in options:
        with contextlib.suppress(OSError), open(options["ended"], "w") as file:  # noqa: PTH123
            file.write(f"{code}\n")
    return code


def _read_job(options: dict[str, str]) -> dict[str, Any]:
    """What job.json says, for an agent in a job; options that it has too go before it."""
    if "job" not in options:
        return {}
    import json

    try:
        with open(options["job"], encoding="utf-8") as file:  # noqa: PTH123
            job: dict[str, Any] = json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"runyard: {options['job']} cannot be read on {socket.gethostname()}: {error}")
    for name in ("sweep", "slots", "count", "folder", "grace"):
        if job.get(name) is not None:
            options.setdefault(name, str(job[name]))
    return job


def _shown(options: dict[str, str]) -> Show | None:
    if "output" not in options:
        return None
    from runyard.node.echo import Show  # Here: most agents show nothing.

    return Show(int(options["output"]))


def _read_end(options: dict[str, str]) -> JobEnd:
    now = time.time()
    seconds = float(options["time"]) if "time" in options else None
    grace = float(options["grace"]) if "grace" in options else None
    return JobEnd(find_end(seconds, os.environ, now), now, grace)


def _read_options(words: list[str]) -> dict[str, str]:
    """`--name value` pairs: argparse costs more than all that is left of our start."""
    known = (
        "sweep", "slots", "count", "folder", "time", "grace", "leash", "output", "quiet", "job",
        "ended",
    )  # fmt: skip
    options: dict[str, str] = {}
    left = list(words)
    while left:
        name = left.pop(0).removeprefix("--")
        if name not in known or (name != "quiet" and not left):
            sys.exit(f"runyard.node.agent: it takes --{' --'.join(known)}, not {name!r}")
        options[name] = "" if name == "quiet" else left.pop(0)
    if "sweep" not in options and "job" not in options:
        sys.exit("runyard.node.agent: which sweep? --sweep KEY")
    return options


def _print(line: str) -> None:
    with contextlib.suppress(OSError):  # Nobody reads: what there is to do is done all the same.
        print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
