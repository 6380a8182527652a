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

from runyard.node.agent.options import (
    DETACH,
    PLACE,
    elsewhere,
    foreign_tracker,
    read_end,
    read_job,
    read_options,
    shown,
)
from runyard.node.agent.work import Slot, Work
from runyard.node.attempt.keeper import start_keeper
from runyard.node.link.place import Place, home_folder
from runyard.node.system.loop import READ, Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from runyard.node.agent.claiming import Claiming
    from runyard.node.agent.foreign_tracker import ForeignTracker
    from runyard.node.agent.hung import HungWatch
    from runyard.node.agent.job_end import JobEnd
    from runyard.node.agent.occupancy import Occupancy
    from runyard.node.attempt.echo import Show
    from runyard.node.attempt.keeper import Keeper
    from runyard.node.devices.layout import Layout
    from runyard.node.link.channel import Answer, Channel
    from runyard.node.link.cloud import Cloud
    from runyard.node.link.place import Server
    from runyard.node.link.relay import Door
    from runyard.node.link.unreached import Watch
    from runyard.node.system.loop import Timer

_RENEW_AT_MOST = 5.0
_DELIVERY_SECONDS = 30.0
_FAREWELL_SECONDS = 2.0
# Asked to end, programs that can save get this long for it. Schedulers kill 30 s after they ask.
_SAVE_SECONDS = 15.0
_SERVER_SILENT_SECONDS = 10.0


class Agent:
    def __init__(
        self,
        sweep: str,
        home: str,
        *,
        end: JobEnd,
        asked: Mapping[str, str] | None = None,
        count: int | None = None,
        folder: str | None = None,
        show: Show | None = None,
        report: Callable[[str], None] = print,
        launcher: Sequence[str] = (),
        tracker: ForeignTracker | None = None,
        exits_as_trials: bool = False,
        is_chained: bool = False,
        logs_tasks: bool = False,
        cloud: Cloud | None = None,
    ) -> None:
        # In a chain being cut off is the plan, and the links are counted: no tries are used up.
        self._cut = "go-on" if is_chained else "time"
        self._exits_as_trials = exits_as_trials
        self._logs_tasks = logs_tasks
        self._loop = Loop()
        self._home = home
        self._place: Server = cloud or Place(home, self._spawn)
        self._open_channel = _channels(cloud, self._place)
        # Not where the programs' clients send to somebody else, or to nobody.
        self._door = _open_door(home) if cloud is None and tracker is None else None
        self._spool = f"{home}/spool" if cloud is None else cloud.make_spool(home)
        self._sweep = sweep
        self._asked = asked or {}
        self._layout: Layout | None = None
        self._occupancy: Occupancy | None = None
        self._work = Work(
            self._loop,
            self._place,
            self._open_channel(self._loop),
            [],
            spool=self._spool,
            keeper=self._start_keeper(),
            end=end,
            count=count,
            home=home,
            folder=folder,
            show=show,
            launcher=list(launcher),
            url=self._door.url if self._door is not None else None,
            tracker=tracker,
            report=lambda line: report(f"{time.strftime('%H:%M:%S')} {line}"),
        )
        for index in range(self._count_slots()):
            self._work.slots.append(Slot(index, self._open_channel(self._loop)))
        self._claiming: Claiming | None = None
        self._lease = 60.0
        self._renewal: Timer | None = None
        self._unreached: Watch | Timer | None = None
        self._began = 0.0
        self._helpers: set[int] = set()
        self._asked_at: float | None = None
        self._trouble: str | None = None
        self._hung: HungWatch | None = None

    def run(self) -> int:
        """Until the sweep has no more for us; the exit code."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._loop.on_signal(number, self._hear_to_end)
        self._loop.on_signal(signal.SIGUSR1, lambda _number: self.finish())
        self._loop.on_signal(signal.SIGUSR2, lambda _number: self._hear_of_end())
        self._loop.on_signal(signal.SIGCHLD, lambda _number: self._reap())
        end = self._work.end
        if end.end is not None:
            self._loop.after(max(0.0, end.seconds_left(time.time()) - end.grace), self._hear_of_end)
        self._join()
        if isinstance(self._place, Place):
            self._began = time.time()
            self._unreached = self._loop.after(_first_word(), self._on_server_silent)
        while not self._work.is_over():
            self._loop.turn()
        self._say_farewell()
        if self._work.job_log is not None:
            self._work.job_log.close()
        if self._work.tracker is not None:
            self._work.tracker.bring_in(self._work.recorded)
        if self._work.sampling is not None:
            self._work.sampling.close()
        if self._occupancy is not None and self._occupancy.mps is not None:
            self._occupancy.mps.end(self._work.keeper)
        self._work.keeper.dismiss()
        if self._work.show is not None:
            self._work.show.close()
        if self._trouble is not None:
            print(f"runyard: {self._trouble}", file=sys.stderr, flush=True)
            return 1
        if not self._exits_as_trials:
            return 0
        from runyard.node.agent.job_file import exit_code

        return exit_code(self._work)

    @property
    def leaves_work(self) -> bool:
        """Whether it ended because its job does, and there may be more to do."""
        return self._work.leaves_work

    @property
    def is_for_nothing(self) -> bool:
        """Whether every trial is too long for a job like this."""
        return self._work.is_for_nothing

    def hold_on_to(self, leash: int) -> None:
        """End when this descriptor is closed at its other end: who started us is gone.

        Unless it let us go before: then we work on alone.
        """
        os.set_inheritable(leash, False)

        def on_parent_gone(_events: int) -> None:
            self._loop.forget(leash)
            if os.read(leash, 1) != DETACH:
                self.drain()

        self._loop.watch(leash, READ, on_parent_gone)

    def finish(self) -> None:
        """Begin no more, and end when what runs has ended by itself."""
        self._work.count = 0

    def _hear_to_end(self, number: int) -> None:
        # The scheduler's one TERM may come twice: from itself, and from the job's script, which
        # hands it on.
        in_time = self._asked_at is not None and time.monotonic() - self._asked_at < _SAVE_SECONDS
        from runyard.schedulers.inside import this_job

        if number != signal.SIGTERM or not in_time or not this_job().is_job:
            self.drain()

    def drain(self) -> None:
        """Begin no more, and end what runs: its trials go back. The second time, at once."""
        again = self._asked_at is not None
        self._asked_at = time.monotonic()
        for attempt in self._work.at_work():
            if again:
                attempt.kill()
            else:
                attempt.leave("preempted", _SAVE_SECONDS if attempt.can_save() else 0.0)
        self._take_no_more(_SAVE_SECONDS)
        if again or not self._work.agent:
            self._give_up()

    def _hear_of_end(self) -> None:
        """The job is about to end, by the clock or by its own word: what runs is to save."""
        if self._work.is_draining:
            return
        self._work.leaves_work = True
        end, now = self._work.end, time.time()
        is_time = end.is_near(now)
        seconds = max(0.0, end.seconds_left(now)) if is_time else end.grace
        last_call = min(end.last_call, seconds / 4)
        for attempt in self._work.at_work():
            attempt.leave(self._cut if is_time else "preempted", seconds - last_call, last_call)
        self._take_no_more(seconds)

    def _take_no_more(self, seconds: float) -> None:
        again, self._work.is_draining = self._work.is_draining, True
        if self._claiming is not None and not again:
            self._claiming.ask_at_once()
        self._loop.after(seconds + _DELIVERY_SECONDS, self._give_up)

    def _count_slots(self) -> int:
        if self._asked.keys() <= {"slots"}:
            return int(self._asked.get("slots", "1"))
        self._layout = self._lay_out()
        return len(self._layout.shares)

    def _lay_out(self) -> Layout:
        from runyard.node.devices.layout import (
            lay_out,  # Where GPUs are shared out, or after the start.
        )

        return lay_out(self._asked, os.environ, self._work.report)

    def _join(self) -> None:
        from runyard.node.agent.job_end import whereabouts

        payload = {
            "token": os.urandom(8).hex(),
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "slots": self._slots,
            "wants_key": True,
            **whereabouts(os.environ),
        }
        self._work.talk.post(f"/api/sweeps/{self._sweep}/agents", payload, self._has_joined)

    def _on_server_silent(self) -> None:
        from runyard.node.link.unreached import Watch  # Where the server is silent.

        since, report = self._began, self._work.report
        self._unreached = Watch(self._loop, self._home, since, report, self._fail)

    def _has_joined(self, answer: Answer) -> None:
        if self._unreached is not None:
            self._unreached.cancel()
        if not answer.is_good:
            self._fail(answer.error)
            return
        if not self._work.take_key(answer):
            self._fail("the server is of an older version, and has no keys for programs: `runyard "
                       "server restart` where it runs")  # fmt: skip
            return
        told = answer.json()
        self._work.agent, self._lease = str(told["agent"]), float(told["lease_seconds"])
        self._renew_later()
        # Not before there is somebody to ask: what it needs is not part of our start.
        from runyard.node.agent.claiming import Claiming
        from runyard.node.agent.end_reports import Ending
        from runyard.node.agent.occupancy import Occupancy
        from runyard.node.devices.sampler_client import Sampling

        work, layout = self._work, self._layout or self._lay_out()
        self._occupancy = occupancy = Occupancy(work, layout)
        if layout.packs and not self._share_gpus(layout, occupancy):
            return
        self._claiming = claiming = Claiming(work, occupancy, Ending(work, self._fail), self._fail)
        if self._logs_tasks:
            from runyard.node.agent.job_log import JobLog

            work.job_log = JobLog(self._loop, work.report)
        work.sampling = Sampling(
            self._loop, lambda told: occupancy.look(told, claiming.ask), self._helpers
        )
        for slot in work.slots:
            claiming.ask(slot)
        from runyard.node.link.server_trouble import TroubleWatch

        channels = [work.talk, *(slot.channel for slot in work.slots)]
        TroubleWatch(
            self._loop, channels, lambda: bool(work.at_work()), work.report, self._leave_trouble
        )
        import subprocess  # noqa: F401  (While the server looks for a trial.)

    def _share_gpus(self, layout: Layout, occupancy: Occupancy) -> bool:
        """See that programs can share GPUs; says whether to go on."""
        from runyard.node.agent.gpu_sharing import NotShared, share_gpus

        try:
            share_gpus(layout, occupancy, self._asked.get("mps", "auto"), self._work)
        except NotShared as error:
            for slot in self._work.slots:
                slot.is_closed = True
            self._fail(str(error))
            return False
        return True

    def _renew_later(self) -> None:
        self._renewal = self._loop.after(min(self._lease / 3, _RENEW_AT_MOST), self._renew)

    def _renew(self) -> None:
        running = [
            {"trial": attempt.trial, "attempt": attempt.number, "usage": attempt.usage}
            for attempt in self._work.held()
        ]
        told = {"running": running, "slots": self._slots, "wants_key": self._wants_key()}
        path = f"/api/agents/{self._work.agent}/renew"
        self._work.talk.post(path, told, self._has_renewed)

    def _wants_key(self) -> bool:
        address = self._place.address
        return address is not None and address.handed is None

    @property
    def _slots(self) -> int:
        """In use at a time, as far as is known by now."""
        return len(self._work.slots) if self._occupancy is None else self._occupancy.slots

    def _has_renewed(self, answer: Answer) -> None:
        self._renew_later()
        if not answer.is_good:
            return
        self._work.take_key(answer)
        told = answer.json()
        self._lease = float(told.get("lease_seconds") or self._lease)
        held = {(attempt.trial, attempt.number): attempt for attempt in self._work.held()}
        for stop in told.get("stop", ()):
            attempt = held.get((stop["trial"], stop["attempt"]))
            if attempt is not None:
                # Lost: somebody else has the trial by now, and there must not be two.
                attempt.end("node" if stop["why"] == "lost" else stop["why"])
        if told.get("over") or self._hung is not None:
            from runyard.node.agent.hung import HungWatch  # Where a run is over before its program.

            self._hung = self._hung or HungWatch(self._work.report)
            self._hung.look(told.get("over", ()), held)

    def _reap(self) -> None:
        for attempt in self._work.held():
            attempt.look()
        for helper in list(self._helpers):
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(helper, os.WNOHANG)[0]:
                    self._helpers.discard(helper)
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(self._work.keeper.pid, os.WNOHANG)[0]:
                self._replace_keeper()
        if self._door is not None:
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(self._door.pid, os.WNOHANG)[0]:
                    self._door.open()

    def _start_keeper(self) -> Keeper:
        def tell(spool: str) -> None:
            from runyard.node.attempt.delivery import (
                deliver_leftovers,  # In the keeper, when it is needed.
            )

            deliver_leftovers(spool, self._open_channel)

        held = self._door.handles if self._door is not None else ()
        return start_keeper(self._spool, tell, held)

    def _replace_keeper(self) -> None:
        self._work.keeper.dismiss()
        self._work.keeper = self._start_keeper()
        for attempt in self._work.at_work():
            attempt.keep_with(self._work.keeper)
        if self._occupancy is not None and self._occupancy.mps is not None:
            self._occupancy.mps.keep_with(self._work.keeper)

    def _spawn(self, words: list[str]) -> None:
        from runyard.node.system.launching import launch  # Only where the server is gone.

        nothing = os.open(os.devnull, os.O_RDWR)
        self._helpers.add(launch(words, os.environ, None, nothing))
        os.close(nothing)

    def _fail(self, trouble: str) -> None:
        self._trouble = trouble
        self.drain()

    def _leave_trouble(self, trouble: str) -> None:
        """The server cannot be told of anything; what it should know is kept for another agent."""
        self._fail(trouble)
        self._give_up()

    def _give_up(self) -> None:
        self._work.gave_up = True

    def _say_farewell(self) -> None:
        work = self._work
        if not work.agent:
            return
        if self._renewal is not None:
            self._renewal.cancel()
        answered: list[Answer] = []
        why = self._trouble or ("asked to end" if work.is_draining else "nothing left to do")
        address = self._place.address
        has_key = address is not None and address.handed not in (None, address.key)
        content = {"why": why, "leaves_key": has_key}
        work.talk.post(f"/api/agents/{work.agent}/leave", content, answered.append)
        end = time.monotonic() + _FAREWELL_SECONDS
        while not answered and time.monotonic() < end:
            self._loop.turn(end - time.monotonic())


def _channels(cloud: Cloud | None, place: Server) -> Callable[[Loop], Channel]:
    """What opens a connection to whoever hands out the trials."""
    if cloud is not None:
        from runyard.node.link.cloud_channel import CloudChannels

        return CloudChannels(cloud).open
    from runyard.node.link.channel import Channel

    return lambda loop: Channel(loop, place)


def _first_word() -> float:
    """When it is said that the server does not answer: it may be starting, or moving."""
    return min(
        _SERVER_SILENT_SECONDS,
        float(os.environ.get("RUNYARD_REACH_SECONDS") or _SERVER_SILENT_SECONDS),
    )


def _open_door(home: str) -> Door:
    from runyard.node.link.relay import Door  # Here: most files of an agent are loaded when needed.

    door = Door(home)
    door.open()
    return door


def main(words: list[str] | None = None) -> int:
    options = read_options(sys.argv[1:] if words is None else words)
    job = read_job(options)
    home = home_folder()
    report: Callable[[str], None] = _print if "quiet" not in options else lambda _line: None
    agent = Agent(
        options["sweep"],
        home,
        asked={name: options[name] for name in PLACE if name in options},
        count=int(options["count"]) if "count" in options else None,
        folder=options.get("folder"),
        show=shown(options),
        end=read_end(options, job.get("limit")),
        report=report,
        launcher=job.get("launcher", ()),
        tracker=foreign_tracker(job, home),
        exits_as_trials=job.get("exit") == "trials",
        is_chained=bool(job.get("chain")),
        logs_tasks=bool(job.get("job_log")),
        cloud=elsewhere(options),
    )
    if "leash" in options:
        agent.hold_on_to(int(options["leash"]))
    code = agent.run()
    if agent.is_for_nothing and job.get("chain"):
        from runyard.node.agent.job_file import cancel_links

        cancel_links(options["job"], report)
    if "ended" in options:
        from runyard.node.agent.job_file import write_end

        write_end(options["ended"], code, leaves_work=agent.leaves_work)
    return code


def _print(line: str) -> None:
    with contextlib.suppress(OSError):  # Nobody reads: what there is to do is done all the same.
        print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
