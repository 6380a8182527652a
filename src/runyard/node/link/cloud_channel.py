"""What an agent says to a server that is not ours, in W&B's words.

A `CloudChannel` takes what is said to our server, so the agent is one and the same. W&B's server
gives an agent one run at a time, so each slot is an agent to it. Where the server turns out to be
one of ours, everything passes through unchanged.

W&B hands a run out again if it was announced as preempting before it ended; the agent does that
when it has to leave. A program that wants to go on while the agent stays is begun again here.
"""

from __future__ import annotations

import json
import socket
import time
from functools import partial

from runyard.end_causes import AGENT_LEAVES, GOES_ON
from runyard.node.link.channel import Answer, Channel
from runyard.node.link.cloud_requests import CloudRequests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from runyard.node.link.cloud import Cloud
    from runyard.node.system.loop import Loop, Timer

    OnAnswer = Callable[[Answer], None]

# As W&B's own agents.
_BEAT_SECONDS = 5.0
_LEASE_SECONDS = 15.0
# Begun again here so often without a new checkpoint, and not more.
_MOST_CUTS = 5
# As many ends with nothing but failures are enough, as W&B's agents have it.
_MOST_FAILURES = 5
_CREATE = (
    "mutation CreateAgent($host: String!, $projectName: String!, $entityName: String!, "
    "$sweep: String!) { createAgent(input: {host: $host, projectName: $projectName, "
    "entityName: $entityName, sweep: $sweep}) { agent { id } } }"
)
_HEARTBEAT = (
    "mutation Heartbeat($id: ID!, $metrics: JSONString, $runState: JSONString) { "
    "agentHeartbeat(input: {id: $id, metrics: $metrics, runState: $runState}) "
    "{ agent { id } commands } }"
)


class CloudChannels:
    """The channels of one agent, which share a process that speaks with the server."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._loop: Loop | None = None
        self._requests: CloudRequests | None = None
        self._channels: list[CloudChannel] = []

    def open(self, loop: Loop) -> CloudChannel:
        if loop is not self._loop:  # A forked keeper has its own loop, process and channels.
            self._loop, self._requests = loop, CloudRequests(loop, self._cloud.url)
            self._channels = []
        assert self._requests is not None
        channel = CloudChannel(self._cloud, loop, self._requests, self._channels)
        self._channels.append(channel)
        return channel


class CloudChannel(Channel):
    """What a slot says and hears. `channels`: all of this agent, in the order of its slots."""

    def __init__(
        self, cloud: Cloud, loop: Loop, requests: CloudRequests, channels: list[CloudChannel]
    ) -> None:
        super().__init__(loop, cloud)
        self._cloud = cloud
        self._requests = requests
        self._channels = channels
        self._line = len(channels)
        self._agent = ""
        self._claim: OnAnswer | None = None
        self._until = 0.0
        self._is_seeking = False
        self._timer: Timer | None = None
        self._held: dict[str, Any] | None = None
        self._kept: dict[str, Any] | None = None
        self._begun = 0.0
        self._cuts = 0
        self._is_announced = False
        self._open = 0

    @property
    def is_idle(self) -> bool:
        if self._cloud.our_key is not None:
            return super().is_idle
        return not self._open and self._claim is None

    def post(self, path: str, payload: Any, on_answer: OnAnswer, *, seconds: float = 30.0) -> None:
        word = path.partition("?")[0].rpartition("/")[2]
        if word == "agents":
            self._join(payload, on_answer)
        elif self._cloud.our_key is not None:
            super().post(path, payload, on_answer, seconds=seconds)
        elif word == "claim":
            if self._cloud.is_too_late(payload.get("seconds_left")):
                _answer_soon(self._loop, on_answer, {"do": "exit", "refusal": "late"})
            else:
                self._seek(on_answer, payload["wait"])
        elif word == "renew":
            self._renew(payload["running"], on_answer)
        elif word == "ends":
            self._end(payload, on_answer)
        elif word == "leave":
            self._leave(on_answer)
        else:
            # Its own client brings the console, and a history there cannot be rewound from here.
            _answer_soon(self._loop, on_answer, {"stored": _console_end(path, payload)})

    def take_back_last(self) -> None:
        """The claim is not wanted any more; what it may have brought is given to the next one."""
        if self._cloud.our_key is not None:
            super().take_back_last()
        self._claim = None
        if self._timer is not None:
            self._timer.cancel()

    def drop(self) -> None:
        super().drop()
        self._requests.close()

    def announce_leaving(self, claim: dict[str, Any]) -> None:
        """Before its program ends: W&B hands out again what was announced."""
        if self._cloud.our_key is not None:
            return
        for channel in self._channels:
            held = channel._held
            if held is not None and held["trial"]["number"] == claim["trial"]["number"]:
                channel._is_announced = True
                channel._tell_end(claim["run"]["key"], None, is_cut=True, then=lambda: None)

    def _ask(self, asked: dict[str, Any], on_told: Callable[[dict[str, Any]], None]) -> None:
        self._open += 1

        def hear(answer: dict[str, Any]) -> None:
            self._open -= 1
            on_told(answer)

        self._requests.ask({"line": self._line, **asked}, hear)

    def _join(self, payload: Any, on_answer: OnAnswer) -> None:
        cloud = self._cloud

        def hear(answer: dict[str, Any]) -> None:
            if "error" in answer:
                on_answer(_refusal(answer["error"]))
                return
            cloud.is_opened(answer["data"])
            if cloud.our_key is not None:
                path = f"/api/sweeps/{cloud.our_key}/agents"
                super(CloudChannel, self).post(path, payload, on_answer)
            else:
                on_answer(_said({"agent": "cloud", "lease_seconds": _LEASE_SECONDS}))

        path = f"{cloud.entity}/{cloud.project}/{cloud.sweep}"
        self._ask({"do": "open", "sweep": path}, hear)

    def _seek(self, on_answer: OnAnswer, wait: float) -> None:
        """Beat until there is a run to be had, or the time is over."""
        self._claim, self._until = on_answer, time.monotonic() + wait
        if self._kept is not None:
            kept, self._kept = self._kept, None
            self._hand_over(kept)
        elif self._cloud.trouble is not None:
            self._refuse(self._cloud.trouble)
        elif self._cloud.is_over:
            self._answer_claim({"do": "exit"})
        elif self._is_seeking:
            return  # The answer is then this one's.
        elif not wait:  # Nothing is under way that could bring one.
            self._answer_claim({"do": "wait"})
        elif not self._agent:
            self._create()
        else:
            self._beat()

    def _create(self) -> None:
        def hear(answer: dict[str, Any]) -> None:
            self._is_seeking = False
            made = (answer.get("data") or {}).get("createAgent") or {}
            if "error" in answer or not made.get("agent"):
                self._refuse(answer.get("error") or "the server did not take an agent")
                return
            self._agent = made["agent"]["id"]
            if time.monotonic() < self._until:
                self._beat()
            else:
                self._answer_claim({"do": "wait"})

        self._is_seeking = True
        cloud = self._cloud
        variables = {
            "host": socket.gethostname(),
            "projectName": cloud.project,
            "entityName": cloud.entity,
            "sweep": cloud.sweep,
        }
        self._ask({"do": "graphql", "query": _CREATE, "variables": variables}, hear)

    def _heartbeat(
        self, alive: dict[str, bool], then: Callable[[dict[str, Any] | None, str | None], None]
    ) -> None:
        """`then` hears the command that there is, if any, or what went wrong for good."""

        def hear(answer: dict[str, Any]) -> None:
            if "error" in answer:
                then(None, answer["error"] if answer["is_final"] else None)
                return
            try:
                commands = json.loads(answer["data"]["agentHeartbeat"]["commands"] or "[]")
            except (LookupError, TypeError, ValueError):
                commands = []
            then(commands[0] if commands else None, None)

        variables = {"id": self._agent, "metrics": "{}", "runState": json.dumps(alive)}
        self._ask({"do": "graphql", "query": _HEARTBEAT, "variables": variables}, hear)

    def _beat(self) -> None:
        self._is_seeking = True
        self._heartbeat({}, self._hear_free)

    def _hear_free(self, command: dict[str, Any] | None, error: str | None) -> None:
        self._is_seeking = False
        kind = None if command is None else command.get("type")
        if command is not None and kind in ("run", "resume"):
            attempt = 2 if kind == "resume" else 1
            self._hand_over(self._cloud.told_of(command, attempt))
        elif kind == "exit":
            self._cloud.is_over = True
            self._answer_claim({"do": "exit"})
        elif error is not None:
            self._refuse(error)
        elif self._claim is not None:
            left = self._until - time.monotonic()
            if left > 0:
                self._timer = self._loop.after(min(_BEAT_SECONDS, left), self._beat)
            else:
                self._answer_claim({"do": "wait"})

    def _hand_over(self, trial: dict[str, Any]) -> None:
        if self._claim is None:
            self._kept = trial  # It was taken back: whoever asks next gets it.
            return
        self._held, self._begun, self._is_announced = trial, time.time(), False
        self._answer_claim(trial)

    def _answer_claim(self, trial: dict[str, Any]) -> None:
        claim, self._claim = self._claim, None
        if claim is not None:
            _answer_soon(self._loop, claim, trial)

    def _refuse(self, error: str) -> None:
        claim, self._claim = self._claim, None
        if claim is not None:
            claim(_refusal(error))

    def _renew(self, running: list[dict[str, int]], on_answer: OnAnswer) -> None:
        """Every slot with a program beats, and tells what of it is to end."""
        numbers = {attempt["trial"]: attempt["attempt"] for attempt in running}
        stops: list[dict[str, Any]] = []
        beating: list[CloudChannel] = []

        def has_beaten(
            channel: CloudChannel, command: dict[str, Any] | None, _error: str | None
        ) -> None:
            kind = None if command is None else command.get("type")
            held = channel._held
            if kind == "exit":
                self._cloud.is_over = True
            if kind in ("stop", "exit") and held is not None:
                why = "stopped" if kind == "stop" else "canceled"
                number = held["trial"]["number"]
                stops.append({"trial": number, "attempt": held["attempt"], "why": why})
            beating.remove(channel)
            if not beating:
                on_answer(_said({"stop": stops, "lease_seconds": _LEASE_SECONDS}))

        for channel in self._channels:
            held = channel._held
            if held is not None and held["trial"]["number"] in numbers:
                beating.append(channel)
        for channel in list(beating):
            assert channel._held is not None
            channel._heartbeat({channel._held["run"]["id"]: True}, partial(has_beaten, channel))
        if not beating and not stops:
            _answer_soon(self._loop, on_answer, {"stop": [], "lease_seconds": _LEASE_SECONDS})

    def _end(self, payload: dict[str, Any], on_answer: OnAnswer) -> None:
        held, self._held = self._held, None
        code, cause = payload["exit_code"], payload["cause"]
        self._cloud.saves = self._cloud.saves or bool(payload.get("saved"))
        run = held["run"]["key"] if held is not None else payload.get("run")
        self._cuts = 0 if payload.get("saved") or cause == "go-on" else self._cuts + 1
        stays = held is not None and cause in GOES_ON and cause not in AGENT_LEAVES
        if stays and held is not None and not self._is_announced and self._cuts <= _MOST_CUTS:
            self._kept = {**held, "attempt": held["attempt"] + 1}
            _answer_soon(self._loop, on_answer, _ended("waiting", cause))
            return
        is_cut = cause in GOES_ON and self._cuts <= _MOST_CUTS
        if not is_cut:
            self._cloud.note_end(code == 0, time.time() - self._begun)
        self._stop_where_all_fail()
        state = "waiting" if is_cut else "finished" if code == 0 else "failed"
        exit_code = _ended(state, cause)
        # Who ended by itself has told so; of one that a signal ended, nobody knows there.
        if code < 0 and run is not None:
            self._tell_end(
                str(run),
                _shell_code(code),
                is_cut=is_cut and not self._is_announced,
                then=lambda: on_answer(_said(exit_code)),
            )
        else:
            _answer_soon(self._loop, on_answer, exit_code)

    def _stop_where_all_fail(self) -> None:
        cloud = self._cloud
        if cloud.failed >= _MOST_FAILURES and not cloud.finished:
            cloud.trouble = f"the first {cloud.failed} trials all failed: this agent takes no more"

    def _leave(self, on_answer: OnAnswer) -> None:
        """What was to be begun again here, and is not, is W&B's to hand out."""
        left = [channel._kept for channel in self._channels if channel._kept is not None]
        waiting = len(left)

        def has_told() -> None:
            nonlocal waiting
            waiting -= 1
            if waiting <= 0:
                on_answer(_said({}))

        for claim in left:
            self._tell_end(claim["run"]["key"], 1, is_cut=True, then=has_told)
        if not left:
            _answer_soon(self._loop, on_answer, {})

    def _tell_end(
        self, run: str, exit_code: int | None, *, is_cut: bool, then: Callable[[], None]
    ) -> None:
        request = {"do": "stream", "run": run, "exit_code": exit_code, "is_cut": is_cut}
        self._ask(request, lambda _answer: then())


def _said(content: dict[str, Any]) -> Answer:
    return Answer(200, json.dumps(content).encode())


def _refusal(error: str) -> Answer:
    return Answer(403, json.dumps({"error": error}).encode())


def _ended(state: str, cause: str | None) -> dict[str, Any]:
    return {"trial": {"state": state, "cause": cause}}


def _answer_soon(loop: Loop, on_answer: OnAnswer, content: dict[str, Any]) -> None:
    # Not at once: who asks does not expect the answer before it has asked.
    loop.after(0.0, lambda: on_answer(_said(content)))


def _console_end(path: str, payload: object) -> int:
    start = path.partition("offset=")[2]
    return int(start or 0) + (len(payload) if isinstance(payload, bytes) else 0)


def _shell_code(exit_code: int) -> int:
    return 128 - exit_code
