"""An attempt of many processes: started on all nodes of the job, watched, and ended together.

    leader SETTINGS N [N words of a container] COMMAND...

To the agent this is the attempt's program. It starts one step of the job, in which every task is a
worker; each keeps a connection to here. A rank that fails ends the others at once; ranks that ask
to go on (75) are waited for. Whatever happens to this process, its connections end, and with them
the ranks on every node. The exit code is that of the first rank that failed.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time

from runyard.node.attempt.client_finish import FINISH_SECONDS
from runyard.node.devices.gpus import ask_driver
from runyard.node.ranks.launchers import (
    Meeting,
    NotPython,
    count_gpus,
    program_words,
)
from runyard.node.ranks.ports import Port, address, listen
from runyard.node.system.processes import MARK
from runyard.rank_forms import ONE_A_NODE
from runyard.save_protocol import GO_ON
from runyard.schedulers.inside import job_of_ranks, this_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# A rank has its client send everything before it ends its program.
_KILL_SECONDS = FINISH_SECONDS + 4.0
_STEP_SECONDS = FINISH_SECONDS + 7.0
# Ranks that save and leave need not do so in the same second.
_TOGETHER_SECONDS = 30.0
_LOOK_SECONDS = 0.5
# Anybody on the network can connect: a rank says who it is at once, in a short line.
_HELLO_SECONDS = 10.0
_LONGEST_HELLO = 1024


class Rank:
    """A connection to one task, or to a stranger: `number` is None until it has shown the token."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.since = time.monotonic()
        self.number: int | None = None
        self.code: int | None = None
        self.received = b""

    def tell(self, word: str) -> None:
        with contextlib.suppress(OSError):
            self.channel.sendall(f"{word}\n".encode())


class Ranks:
    def __init__(self, token: str, door: socket.socket) -> None:
        self._token = token
        self._door = door
        self._ranks: list[Rank] = []
        self._failed: int | None = None
        self._goes_on = False
        self._heard, written = os.pipe()
        os.set_blocking(written, False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(written, warn_on_full_buffer=False)
        self._ends_at: float | None = None
        self._stop_signals: list[tuple[float, str]] = []

    def watch(self, step: Any) -> int:
        """Until the step has ended; the attempt's exit code."""
        while step.poll() is None:
            watched: list[Any] = [self._heard, self._door]
            watched += [rank.channel for rank in self._ranks if rank.channel.fileno() >= 0]
            ready, _, _ = select.select(watched, [], [], _LOOK_SECONDS)
            if self._heard in ready:
                self._hear(os.read(self._heard, 64))
            if self._door in ready:
                with contextlib.suppress(OSError):
                    self._ranks.append(Rank(self._door.accept()[0]))
            for rank in [rank for rank in self._ranks if rank.channel in ready]:
                self._listen(rank)
            self._drop_strangers(_HELLO_SECONDS)
            self._send_signal(step)
        for rank in [rank for rank in self._ranks if rank.number is None]:
            rank.channel.setblocking(
                False
            )  # A rank that ended at once may not have been heard yet.
            self._listen(rank)
        self._drop_strangers(0.0)
        for rank in self._ranks:  # What came with the last of them.
            if rank.channel.fileno() >= 0:
                rank.channel.setblocking(True)
            while rank.channel.fileno() >= 0:
                self._listen(rank)
        if self._failed is not None:
            return self._failed if self._failed >= 0 else 128 - self._failed
        if self._goes_on:
            return GO_ON
        return int(step.returncode) if step.returncode >= 0 else 128 - int(step.returncode)

    def _hear(self, numbers: bytes) -> None:
        if signal.SIGUSR2 in numbers:
            self._tell_all("USR2")
        if signal.SIGTERM in numbers or signal.SIGINT in numbers:
            self._end_all(0.0)

    def _listen(self, rank: Rank) -> None:
        try:
            part = rank.channel.recv(4096)
        except OSError:
            part = b""
        if not part:
            rank.channel.close()
            if rank.number is not None and rank.code is None:
                self._has_failed(rank.number, -int(signal.SIGKILL), "is gone")
            return
        *lines, rank.received = (rank.received + part).split(b"\n")
        for line in lines:
            if rank.number is not None:
                self._take(rank, rank.number, json.loads(line))
            elif not self._admit(rank, line):
                return
        if rank.number is None and len(rank.received) > _LONGEST_HELLO:
            rank.channel.close()

    def _admit(self, rank: Rank, line: bytes) -> bool:
        """Whether a connection's first line shows that it is a rank of this attempt."""
        rank.number = _read_hello(line, self._token)
        if rank.number is None:
            rank.channel.close()
        elif self._is_ending():
            rank.tell("TERM")
        return rank.number is not None

    def _drop_strangers(self, seconds: float) -> None:
        """Close connections that have not shown the token within this time."""
        now = time.monotonic()
        for rank in self._ranks:
            if rank.number is None and now - rank.since >= seconds:
                rank.channel.close()
        self._ranks = [
            rank for rank in self._ranks if rank.number is not None or rank.channel.fileno() >= 0
        ]

    def _take(self, rank: Rank, number: int, message: dict[str, Any]) -> None:
        rank.code = int(message["code"])
        if rank.code == GO_ON:
            self._goes_on = True
            self._end_all(_TOGETHER_SECONDS)
        elif rank.code:
            how = f"code {rank.code}" if rank.code > 0 else f"signal {-rank.code}"
            self._has_failed(number, rank.code, f"ended with {how}")

    def _has_failed(self, number: int, code: int, how: str) -> None:
        if self._is_ending() and self._goes_on:
            return  # The first that left asked to go on; this one hung, and was ended by us.
        if self._failed is None:
            if not self._is_ending():
                print(f"runyard: rank {number} {how}; the others are ended", file=sys.stderr,
                      flush=True)  # fmt: skip
            self._failed = code
        self._end_all(0.0)

    def _is_ending(self) -> bool:
        """Whether ranks were told to end: what they do then is our own doing."""
        return self._ends_at is not None and self._ends_at <= time.monotonic()

    def _end_all(self, seconds: float) -> None:
        begin = time.monotonic() + seconds
        # KILL may come sooner, never later: each rank that dies of TERM would put it off.
        if self._ends_at is None or begin < self._ends_at:
            self._ends_at = begin
            self._stop_signals = [
                (begin, "TERM"), (begin + _KILL_SECONDS, "KILL"), (begin + _STEP_SECONDS, "step"),
            ]  # fmt: skip

    def _send_signal(self, step: Any) -> None:
        while self._stop_signals and self._stop_signals[0][0] <= time.monotonic():
            _, word = self._stop_signals.pop(0)
            if word == "step":
                step.kill()
            else:
                self._tell_all(word)

    def _tell_all(self, word: str) -> None:
        for rank in self._ranks:
            if rank.code is None and rank.channel.fileno() >= 0:
                rank.tell(word)


def _read_hello(line: bytes, token: str) -> int | None:
    """The rank's number; None for a line that no rank of this attempt would say."""
    if len(line) > _LONGEST_HELLO or token.encode() not in line:
        return None  # Nothing that a stranger says is parsed.
    try:
        hello = json.loads(line)
        return int(hello["rank"]) if hello["token"] == token else None
    except (ValueError, TypeError, KeyError):
        return None


def main(words: list[str] | None = None) -> int:
    settings_json, count, *rest = sys.argv[1:] if words is None else words
    settings: dict[str, Any] = json.loads(settings_json)
    around, command = rest[: int(count)], rest[int(count) :]
    low, high = settings.get("ports") or (0, 0)
    allowed = (int(low), int(high)) if high else None
    try:
        with Port(allowed) as port:
            meeting = _meeting(settings, port)
            if meeting.nodes == 1 and settings["form"] in ONE_A_NODE:
                return _become(settings, meeting, port, around, command)
            with listen(allowed) as door:
                return _start(settings, meeting, door, [count, *around, *command])
    except OSError as error:
        print(
            f"runyard: ranks have no place to meet: {error}; network.ports in the profile says "
            "which ports nodes may use",
            file=sys.stderr, flush=True,
        )  # fmt: skip
        return 1


def _meeting(settings: dict[str, Any], port: Port) -> Meeting:
    name = f"{this_job().own_id or 'here'}.{os.environ.get('RUNYARD_ATTEMPT', '1')}"
    here = address(settings.get("interface"), settings.get("suffix"))
    return Meeting(int(settings["nodes"]), here, port.number, f"{name}.{os.urandom(4).hex()}")


def _become(
    settings: dict[str, Any], meeting: Meeting, port: Port, around: list[str], command: list[str]
) -> int:
    """On one node, what starts the node's processes is the attempt's program itself."""
    driver = ask_driver if settings.get("has_gpus") else list
    gpus = count_gpus(os.environ, driver) or int(settings.get("processes") or 1)
    try:
        own = program_words(settings["form"], command, meeting, node=0, processes=gpus)
    except NotPython as error:
        print(f"runyard: {error}", file=sys.stderr, flush=True)
        return 2
    words = [*around, *own]
    port.hand_on()
    try:
        os.execvp(words[0], words)  # noqa: S606 - We become it.
    except OSError as error:
        print(f"runyard: {words[0]}: {error.strerror}", file=sys.stderr, flush=True)
        return 127


def _start(
    settings: dict[str, Any], meeting: Meeting, door: socket.socket, words: list[str]
) -> int:
    import subprocess

    job = job_of_ranks()
    token = os.environ.get(MARK) or os.urandom(8).hex()
    meets = {
        **settings,
        "address": meeting.address,
        "port": meeting.port,
        "name": meeting.name,
        "hub": door.getsockname()[1],
        "batch": job.node or "",
    }
    source = os.path.abspath(f"{os.path.dirname(__file__)}/../../..")
    start = (
        f"import sys; sys.path.insert(0, {source!r}); "
        "from runyard.node.ranks.worker import main; sys.exit(main())"
    )
    ranks = Ranks(token, door)
    try:
        starter = job.ranks_command(
            meeting.nodes, int(settings["tasks"]), mpi=settings["form"] == "mpi"
        )
        step = subprocess.Popen(
            [*starter, sys.executable, "-I", "-S", "-c", start, json.dumps(meets), *words],
            env={**job.step_environ(), MARK: token},
        )
    except OSError as error:
        trouble = job.no_ranks(error.strerror or str(error))
        print(f"runyard: {trouble}", file=sys.stderr, flush=True)
        return 127
    return ranks.watch(step)


if __name__ == "__main__":
    sys.exit(main())
