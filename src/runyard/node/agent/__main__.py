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

    from runyard.node.agent.foreign_tracker import ForeignTracker
    from runyard.node.agent.job_end import JobEnd
    from runyard.node.agent.occupancy import Occupancy
    from runyard.node.attempt.echo import Show
    from runyard.node.attempt.keeper import Keeper
    from runyard.node.devices.layout import Layout
    from runyard.node.devices.mps import Mps
    from runyard.node.link.channel import Channel
    from runyard.node.link.cloud import Cloud
    from runyard.node.link.place import Server
    from runyard.node.link.relay import Door


class Agent:
    def __init__(
        self,
        sweep: str,
        home: str,
        *,
        end: JobEnd,
        options: Mapping[str, str] | None = None,
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
        self._exits_as_trials = exits_as_trials
        self._logs_tasks = logs_tasks
        self._loop = Loop()
        self._home = home
        self._place: Server = cloud or Place(home, self._spawn)
        self._open_channel = _channels(cloud, self._place)
        # Not where the programs' clients send to somebody else, or to nobody.
        self._door = _open_door(home) if cloud is None and tracker is None else None
        self._spool = f"{home}/spool" if cloud is None else cloud.make_spool(home)
        self._options = options or {}
        self._layout: Layout | None = None
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
        # Here: not loaded before the agent is made.
        from runyard.node.agent.draining import Draining
        from runyard.node.agent.membership import Membership

        self._draining = Draining(self._work, is_chained=is_chained)
        self._membership = Membership(sweep, self._work, self._has_joined)

    def run(self) -> int:
        """Until the sweep has no more for us; the exit code."""
        self._draining.watch()
        self._loop.on_signal(signal.SIGCHLD, lambda _number: self._reap())
        self._membership.join()
        if isinstance(self._place, Place):
            self._membership.watch_silence(self._draining.fail)
        while not self._work.is_over():
            self._loop.turn()
        self._membership.leave(self._draining.trouble)
        if self._work.job_log is not None:
            self._work.job_log.close()
        if self._work.tracker is not None:
            self._work.tracker.bring_in(self._work.recorded)
        if self._work.sampling is not None:
            self._work.sampling.close()
        if self._membership.occupancy is not None:
            self._membership.occupancy.close()
        if self._mps is not None:
            self._mps.end(self._work.keeper)
        if self._work.warm_starts is not None:
            self._work.warm_starts.close()
        self._work.keeper.dismiss()
        if self._work.show is not None:
            self._work.show.close()
        self._work.end.close()
        if self._draining.trouble is not None:
            print(f"runyard: {self._draining.trouble}", file=sys.stderr, flush=True)
            return 1
        if not self._exits_as_trials:
            return 0
        from runyard.node.agent.job_file import exit_code

        return exit_code(self._work)

    @property
    def leaves_work(self) -> bool:
        """Whether it ended because its job does, or for trouble, and there may be more to do. A job
        that is pushed out goes back to the queue by the scheduler's doing."""
        if self.is_for_nothing or self._work.end.is_pushed_out:
            return False
        return self._work.leaves_work or self._draining.is_for_another

    @property
    def seconds_to_stay(self) -> float:
        """How long the job's script is not to end by itself: it is pushed out."""
        return self._draining.seconds_to_stay

    def wait_to_be_ended(self) -> None:
        """Where no script waits."""
        self._draining.wait_to_be_ended()

    @property
    def is_for_nothing(self) -> bool:
        """Whether every trial is too long for a job like this."""
        return self._work.is_for_nothing

    def hold_on_to(self, control: int) -> None:
        """End when this descriptor is closed at its other end: who started us is gone.

        Unless it let us go before: then we work on alone.
        """
        os.set_inheritable(control, False)

        def on_parent_gone(_events: int) -> None:
            self._loop.forget(control)
            if os.read(control, 1) != DETACH:
                self._draining.drain()

        self._loop.watch(control, READ, on_parent_gone)

    @property
    def _mps(self) -> Mps | None:
        occupancy = self._membership.occupancy
        return None if occupancy is None else occupancy.mps

    def _count_slots(self) -> int:
        if self._options.keys() <= {"slots"}:
            return int(self._options.get("slots", "1"))
        self._layout = self._lay_out()
        return len(self._layout.shares)

    def _lay_out(self) -> Layout:
        from runyard.node.devices.layout import (
            lay_out,  # Where GPUs are shared out, or after the start.
        )

        return lay_out(self._options, os.environ, self._work.report)

    def _has_joined(self, failure: str | None) -> None:
        if failure is not None:
            self._draining.fail(failure)
            return
        # Not before there is somebody to ask: what it needs is not part of our start.
        from runyard.node.agent.claiming import Claiming
        from runyard.node.agent.end_reports import Ending
        from runyard.node.agent.gpu_time import GpuTime
        from runyard.node.agent.membership import TroubleWatch
        from runyard.node.agent.occupancy import Occupancy
        from runyard.node.devices.sampler_client import Sampling

        work, layout, fail = self._work, self._layout or self._lay_out(), self._draining.fail
        self._membership.occupancy = occupancy = Occupancy(work, layout)
        if layout.packs and not self._share_gpus(layout, occupancy):
            return
        self._draining.claiming = claiming = Claiming(work, occupancy, Ending(work, fail), fail)
        if self._logs_tasks:
            from runyard.node.agent.job_log import JobLog

            work.job_log = JobLog(self._loop, work.report)
        work.gpu_time = GpuTime(work.launcher)
        work.sampling = Sampling(
            self._loop, lambda usage: occupancy.look(usage, claiming.ask), work.helpers, work.report
        )
        for slot in work.slots:
            claiming.ask(slot)
        TroubleWatch(work, self._draining.leave_trouble)
        import subprocess  # noqa: F401  (While the server looks for a trial.)

    def _share_gpus(self, layout: Layout, occupancy: Occupancy) -> bool:
        """See that programs can share GPUs; says whether to go on."""
        from runyard.node.agent.gpu_sharing import NotShared, share_gpus

        try:
            share_gpus(layout, occupancy, self._options.get("mps", "auto"), self._work)
        except NotShared as error:
            for slot in self._work.slots:
                slot.is_closed = True
            self._draining.fail(str(error))
            return False
        return True

    def _reap(self) -> None:
        for attempt in self._work.held():
            attempt.look()
        for helper in list(self._work.helpers):
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(helper, os.WNOHANG)[0]:
                    self._work.helpers.discard(helper)
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
        if self._mps is not None:
            self._mps.keep_with(self._work.keeper)
        if self._work.warm_starts is not None:
            self._work.warm_starts.keep_with(self._work.keeper)

    def _spawn(self, words: list[str]) -> None:
        from runyard.node.system.processes import launch  # Only where the server is gone.

        nothing = os.open(os.devnull, os.O_RDWR)
        self._work.helpers.add(launch(words, os.environ, None, nothing))
        os.close(nothing)


def _channels(cloud: Cloud | None, place: Server) -> Callable[[Loop], Channel]:
    """What opens a connection to whoever hands out the trials."""
    if cloud is not None:
        from runyard.node.link.cloud_channel import CloudChannels

        return CloudChannels(cloud).open
    from runyard.node.link.channel import Channel

    return lambda loop: Channel(loop, place)


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
        options={name: options[name] for name in PLACE if name in options},
        count=int(options["count"]) if "count" in options else None,
        folder=options.get("folder"),
        show=shown(options),
        end=read_end(options, job),
        report=report,
        launcher=job.get("launcher", ()),
        tracker=foreign_tracker(job, home),
        exits_as_trials=job.get("exit") == "trials",
        is_chained=bool(job.get("chain")),
        logs_tasks=bool(job.get("job_log")),
        cloud=elsewhere(options),
    )
    if "control" in options:
        agent.hold_on_to(int(options["control"]))
    code = agent.run()
    stays = agent.seconds_to_stay
    if stays and not ("ended" in options and job.get("pushed_out")):
        agent.wait_to_be_ended()
        stays = 0.0
    if agent.is_for_nothing and job.get("chain"):
        from runyard.node.agent.job_file import cancel_links

        cancel_links(options["job"], report)
    if "ended" in options:
        from runyard.node.agent.job_file import write_end

        write_end(options["ended"], code, leaves_work=agent.leaves_work, stays=stays)
    return code


def _print(line: str) -> None:
    with contextlib.suppress(OSError):  # Nobody reads: what there is to do is done all the same.
        print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
