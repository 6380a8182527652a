"""How an agent comes by its trials: it asks for a slot's next one, and begins what it is given."""

from __future__ import annotations

import os
import signal
import socket
import time

from runyard.node.attempt.delivery import end_message
from runyard.node.attempt.trial_attempt import Attempt
from runyard.node.attempt.workspace import Workspace
from runyard.node.link.channel import ANSWER_SECONDS
from runyard.node.system.processes import launch
from runyard.save_protocol import COURSES, courses_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from runyard.node.agent.end_reports import Ending
    from runyard.node.agent.occupancy import Occupancy
    from runyard.node.agent.work import Slot, Work
    from runyard.node.link.channel import Answer

_WAIT_SECONDS = 20.0


class Claiming:
    """`ask` for a slot; answers do the rest. `fail`: nothing more can be had, and why."""

    def __init__(
        self, work: Work, occupancy: Occupancy, ending: Ending, fail: Callable[[str], None]
    ) -> None:
        self._work = work
        self._occupancy = occupancy
        self._ending = ending
        self._fail = fail

    def ask(self, slot: Slot) -> None:
        """Ask for the slot's next trial, unless enough were taken."""
        claim = self._next_claim(slot)
        if claim is not None:
            self._claim(slot, claim)

    def _next_claim(self, slot: Slot) -> dict[str, Any] | None:
        """What to ask the server, or None where nothing more is wanted now."""
        work = self._work
        asking = sum(other.token is not None for other in work.slots)
        enough = work.count is not None and len(work.taken) + asking >= work.count
        if work.begins_no_more or enough or self._is_at_its_end():
            slot.is_closed, slot.rests = True, False
            return None
        if not self._occupancy.may_ask(slot):
            return None
        return {"token": os.urandom(8).hex(), "wait": _WAIT_SECONDS, **self._room()}

    def _tell_end(self, slot: Slot, attempt: Attempt, on_answer: Callable[[Answer], None]) -> None:
        """Tell an end and ask for the next trial: in one request where the server can answer both
        at once, else in two, without waiting between."""
        path = f"/api/agents/{self._work.agent}/ends"
        message, claim = end_message(attempt.record.content), self._next_claim(slot)
        if claim is None or not attempt.claim.get("claims_with_end"):
            slot.channel.post(path, message, on_answer)
            if claim is not None:
                self._claim(slot, claim)
            return
        slot.token, slot.claims_with_end = claim["token"], True

        def take(answer: Answer) -> None:
            # Before anybody hears of the answer: a refusal ends the agent, which then looks at
            # what its slots still wait for.
            slot.token, slot.claims_with_end = None, False
            on_answer(answer)
            content = answer.json().get("claim") if answer.is_good else None
            if content is not None:
                self._take(slot, content)
            elif not self._work.begins_no_more:
                self._claim(slot, claim)  # Nothing could be had at once.
            elif answer.is_good:
                # This may be the answer to a repetition: the first request may have brought one.
                self._claim(slot, {"token": claim["token"], "wait": 0})
            else:
                slot.is_closed = True

        slot.channel.post(path, {**message, "claim": claim}, take)

    def ask_at_once(self) -> None:
        """No more is wanted; the server may have handed out what we have not heard of.

        Ask, and give it back.
        """
        if self._work.warm_starts is not None:
            self._work.warm_starts.stop_waiting()
        for slot in self._work.slots:
            if slot.token is not None and not slot.claims_with_end:
                slot.channel.take_back_last()
                self._claim(slot, {"token": slot.token, "wait": 0})

    def _is_at_its_end(self) -> bool:
        """Whether what would begin now would be told to save at once."""
        useful = self._work.end.useful_seconds(time.time())
        if useful is None or useful > 0:
            return False
        self._begin_no_more()
        return True

    def _begin_no_more(self) -> None:
        self._work.leaves_work = True
        left = max(0.0, self._work.end.seconds_left(time.time()))
        self._work.report(f"begins no more: its job ends in {left:.0f} s")

    def _room(self) -> dict[str, Any]:
        """What the job has room for, for the server: it knows what the sweep's programs can do."""
        work = self._work
        useful = work.end.useful_seconds(time.time())
        if useful is None:
            return {}
        if work.useful_at_first is None:
            work.useful_at_first = useful
        return {
            "seconds_left": useful,
            "seconds_whole": work.useful_at_first,
            "has_begun": bool(work.taken),
        }

    def _claim(self, slot: Slot, claim: dict[str, Any]) -> None:
        slot.token = claim["token"]

        def take(answer: Answer) -> None:
            if answer.is_good:
                self._take(slot, answer.json())
            else:
                slot.token, slot.is_closed = None, True
                self._fail(answer.error)

        slot.channel.post(
            f"/api/agents/{self._work.agent}/claim",
            claim,
            take,
            seconds=claim["wait"] + ANSWER_SECONDS,
        )

    def _take(self, slot: Slot, claim: dict[str, Any]) -> None:
        work = self._work
        if claim["do"] == "run":
            slot.token = None
            if work.begins_no_more:
                self._give_back(slot, claim)
            else:
                work.taken.add(claim["trial"]["number"])
                self._begin(slot, claim)
        elif claim["do"] == "wait" and not work.begins_no_more:
            slot.token = None
            self.ask(slot)
        else:
            slot.token = None
            slot.is_closed = True
            if claim.get("refusal") == "too-long" and not work.taken:
                work.is_for_nothing = True
                self._fail(claim["why"])
            elif "refusal" in claim:
                self._begin_no_more()

    def _give_back(self, slot: Slot, claim: dict[str, Any]) -> None:
        slot.is_closed, slot.is_preparing = True, False
        content = {
            "trial": claim["trial"]["number"],
            "number": claim["attempt"],
            "exit_code": -int(signal.SIGTERM),
            "cause": "preempted",
        }
        path = f"/api/agents/{self._work.agent}/ends"
        slot.channel.post(path, end_message(content), lambda _answer: None)

    def _begin(self, slot: Slot, claim: dict[str, Any]) -> None:
        work = self._work
        address = work.place.address
        assert address is not None
        if address.handed is None:  # The last one was refused meanwhile.
            work.ask_key(lambda: self._begin(slot, claim))
            return
        folder = work.folder or os.getcwd()
        slot.is_preparing = True
        environ = dict(os.environ)
        environ.update(self._occupancy.variables(slot, environ))
        if work.end.deadline is not None:
            environ["RUNYARD_DEADLINE"] = f"{work.end.deadline:.3f}"
        environ.setdefault(COURSES, courses_folder(work.home, str(claim["run"]["project"])))
        try:
            if work.tracker is not None:
                environ |= work.tracker.record(claim)
                work.recorded.add(str(claim["run"]["id"]))
            if address.authority:
                from runyard.client.roots import trust_environment

                environ |= trust_environment(work.home, address.authority, environ, address.tls_ca)
            workspace = Workspace(claim, address, folder, environ, work.launcher, work.url)
            if work.tracker is not None:
                work.tracker.redirect(workspace.environ, claim)
        except OSError as error:
            self._cannot_run(slot, claim, error)
            return

        def is_ready() -> None:
            if work.begins_no_more:
                self._give_back(slot, claim)
            elif claim.get("warm"):
                self._launch_warm(slot, claim, workspace)
            else:
                self._launch(slot, claim, workspace, launch)

        if claim["attempt"] == 1:
            is_ready()
            return
        from runyard.node.attempt.resume import find_checkpoint, go_back

        def is_found(saved: float | None) -> None:
            go_back(slot.channel, work.agent, claim, workspace, saved, is_ready)

        find_checkpoint(work.loop, work.helpers, workspace.checkpoints, is_found)

    def _launch_warm(self, slot: Slot, claim: dict[str, Any], workspace: Workspace) -> None:
        """When the modules that the sweep names are imported, in the process that it is made of."""
        from runyard.node.attempt.warm_start import WarmStarts  # Where a sweep wants it.

        work = self._work
        if work.warm_starts is None:
            work.warm_starts = WarmStarts(work.loop, lambda: work.keeper, work.report, work.helpers)
        start = work.warm_starts.launcher(claim["warm"])

        def is_warm() -> None:
            if work.begins_no_more:
                self._give_back(slot, claim)
            else:
                self._launch(slot, claim, workspace, start)

        try:
            words = workspace.prepare()
        except OSError as error:
            self._cannot_run(slot, claim, error)
            return
        environ, folder = workspace.environ, workspace.folder
        work.warm_starts.prepare(claim["warm"], words, environ, folder, is_warm)

    def _launch(
        self, slot: Slot, claim: dict[str, Any], workspace: Workspace, start: Callable[..., int]
    ) -> None:
        work = self._work
        attempt = Attempt(
            work.loop,
            work.talk,
            claim,
            work.spool,
            on_end=lambda ended: self._has_ended(slot, ended),
            on_told=work.untold.discard,
            is_crowded=lambda: self._occupancy.is_crowded(slot),
            start=start,
        )
        attempt.gpus = self._occupancy.gpus_of(slot)
        work.count_gpus()
        slot.attempt, slot.is_preparing = attempt, False
        work.untold.add(attempt)
        again = f" (attempt {attempt.number})" if attempt.number > 1 else ""
        work.report(f"{attempt.name} began{again}")
        try:
            if work.show is not None:
                attempt.echo = work.show.echo(attempt.name, workspace.trial_folder)
            with self._occupancy.pinned(slot):
                attempt.begin(workspace, work.agent, work.keeper)
            self._occupancy.begins(slot, str(claim["run"]["project"]), attempt.words)
            if work.sampling is not None:
                work.sampling.watch(attempt)
        except OSError as error:
            slot.attempt = None
            work.untold.discard(attempt)
            self._cannot_run(slot, claim, error)

    def _has_ended(self, slot: Slot, attempt: Attempt) -> None:
        if self._work.sampling is not None:
            self._work.sampling.forget(attempt)
        self._work.count_gpus()
        attempt.record.write(usage=attempt.usage)
        self._occupancy.ended(slot, attempt)
        self._ending.has_ended(slot, attempt, lambda take: self._tell_end(slot, attempt, take))

    def _cannot_run(self, slot: Slot, claim: dict[str, Any], error: OSError) -> None:
        # A full disk, no more processes: nothing that another trial would change.
        self._give_back(slot, claim)
        self._fail(f"{socket.gethostname()} cannot run {claim['trial']['name']}: {error}")
