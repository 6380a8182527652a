"""Programs that begin with modules already imported: forked from a process that holds them.

`runyard: {warm: torch}` in a sweep file asks for it. The agent starts a warm parent
(`fork_server.py`) with the Python and the environment of a trial's command, and later asks it for
the process of each trial in place of starting one. Whatever goes wrong, the program is started as
always.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import socket
import time

from runyard.node.attempt import fork_server
from runyard.node.system import processes
from runyard.node.system.loop import READ
from runyard.node.system.processes import NotStarted, launch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from runyard.node.attempt.keeper import Keeper
    from runyard.node.system.loop import Loop, Timer

# A trial's lease is not renewed while it waits for its parent: less than its 60 seconds.
_WAIT_SECONDS = 40.0
# Two forks and a few system calls.
_FORK_SECONDS = 10.0
# Where the slots' programs have different numbers of threads, there is a parent for each.
_MOST_PARENTS = 4
_MOST_DEATHS = 3
_PADDING = " " * 1000
_PYTHON = re.compile(r"(.*/)?python(\d+(\.\d+)?)?")
_FLAGS = re.compile(r"-[BEIOPsSu]+")
# What a shell would not take as it stands.
_SHELL = re.compile(r"[|&;<>()$`\\*?\[\]#~!{}\n]")
# What differs from trial to trial, and nothing reads before its program does.
_OF_TRIAL = ("RUNYARD_", "WANDB_", "CUDA_VISIBLE_", "CUDA_MPS_", "ROCR_VISIBLE_", "HIP_VISIBLE_")
_OF_RANK = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_SET_CHILD_SUBREAPER = 36


class NotForked(Exception):
    """The warm parent made no process, and why."""


class PythonCommand:
    """`python [flags] SCRIPT ...`, or `python [flags] -m MODULE ...`."""

    def __init__(
        self, words: list[str], start: list[str], rest: list[str], *, is_line: bool
    ) -> None:
        self.words = words
        self.start = start
        """The interpreter and its flags."""
        self.is_module = rest[0] == "-m"
        self.name, *self.arguments = rest[self.is_module :]
        self.is_line = is_line
        """Whether a shell would have started it."""


def read_command(words: Sequence[str], environ: Mapping[str, str]) -> PythonCommand | None:
    """The command as Python's, also behind `env` and as a line for a shell; None if it is not."""
    left = list(words)
    is_line = len(left) == 3 and left[0] in ("bash", "sh") and left[1] == "-c"
    if is_line:
        if _SHELL.search(left[2]) or (left[0] == "bash" and "BASH_ENV" in environ):
            return None
        with contextlib.suppress(ValueError):  # Its quotes do not match.
            left = shlex.split(left[2])
    if left[:1] == ["/usr/bin/env"]:
        left.pop(0)
    rest = left[1:]
    while rest and _FLAGS.fullmatch(rest[0]):
        rest.pop(0)
    is_module = len(rest) > 1 and rest[0] == "-m"
    is_script = bool(rest) and not rest[0].startswith("-") and rest[0].endswith(".py")
    if not left or not _PYTHON.fullmatch(left[0]) or not (is_module or is_script):
        return None
    return PythonCommand(left, left[: len(left) - len(rest)], rest, is_line=is_line)


class _Parent:
    """One warm parent. `on_end` is called with why there is none, or (True) none any more."""

    def __init__(
        self, loop: Loop, on_ready: Callable[[], None], on_end: Callable[[str, bool], None]
    ) -> None:
        self._loop = loop
        self._on_ready = on_ready
        self._on_end = on_end
        self._waiters: list[Callable[[], None]] = []
        self._timer: Timer | None = None
        self.is_ready = self.is_late = False
        self.pid: int | None = None
        self.token = os.urandom(8).hex()

    def start(
        self, words: list[str], environ: dict[str, str], folder: str, request: Mapping[str, object]
    ) -> None:
        self._control, theirs = socket.socketpair()
        nothing = os.open(os.devnull, os.O_RDWR)
        words = [*words, fork_server.__file__, str(theirs.fileno()), _PADDING]
        environ = {**environ, processes.MARK: self.token}
        try:
            # Kernels before 4.11 give orphans to us only where we wanted them before the fork.
            _adopt_orphans(True)
            self.pid = launch(words, environ, folder, nothing, pass_handles=(theirs.fileno(),))
            fork_server.send(self._control, request)
        except (NotStarted, OSError, ImportError) as error:
            self._end(str(error))
            return
        finally:
            _adopt_orphans(False)
            theirs.close()
            os.close(nothing)
        self._loop.watch(self._control.fileno(), READ, self._on_message)

    def wait(self, then: Callable[[], None]) -> None:
        """Call when it is ready, or not to be waited for any more."""
        if self.is_ready or self.is_late or self.pid is None:
            then()
            return
        self._waiters.append(then)
        if self._timer is None:
            self._timer = self._loop.after(_WAIT_SECONDS, self._on_late)

    def stop_waiting(self) -> None:
        waiters, self._waiters = self._waiters, []
        for then in waiters:
            then()

    def fork(self, request: dict[str, object], output: int) -> int:
        """A child of ours that becomes the program; NotForked: none does."""
        reader, go = os.pipe()
        try:
            _adopt_orphans(True)
            self._control.settimeout(_FORK_SECONDS)
            fork_server.send(self._control, {**request, "mark": processes.MARK}, (output, reader))
            answer, _ = fork_server.receive(self._control)
            if "pid" not in answer:
                raise NotForked(answer["error"])
            pid = int(answer["pid"])
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            os.write(go, fork_server.GO)
        except (OSError, EOFError) as error:  # It was killed or hangs, or the child is not ours.
            raise NotForked(str(error) or "it has ended") from error
        finally:
            _adopt_orphans(False)
            os.close(reader)
            os.close(go)
        return pid

    def close(self, why: str | None = None) -> None:
        if self.pid is not None:
            processes.send(self.pid, signal.SIGKILL)
        self._end(why)

    def _end(self, why: str | None) -> None:
        self._loop.forget(self._control.fileno())
        self._control.close()
        was_ready, self.is_ready, self.is_late, self.pid = self.is_ready, False, True, None
        if why is not None:
            self._on_end(why, was_ready)
        self.stop_waiting()

    def _on_late(self) -> None:
        self.is_late = True
        self.stop_waiting()

    def _on_message(self, _events: int) -> None:
        try:
            message, _ = fork_server.receive(self._control)
        except (EOFError, OSError):
            self.close("it was killed" if self.is_ready else "their import ended the process")
            return
        if "error" in message:
            self.close(message["error"])
            return
        self.is_ready = True
        self._on_ready()
        self.stop_waiting()


class WarmStarts:
    """The warm parents of an agent. `children` are the processes that the agent waits for."""

    def __init__(
        self,
        loop: Loop,
        keeper: Callable[[], Keeper],
        report: Callable[[str], None],
        children: set[int],
    ) -> None:
        self._loop = loop
        self._keeper = keeper
        self._report = report
        self._children = children
        self._parents: dict[tuple[object, ...], _Parent] = {}
        self._deaths = 0
        self._said: set[str] = set()

    def prepare(
        self, modules: Sequence[str], words: list[str], environ: dict[str, str], folder: str,
        then: Callable[[], None],
    ) -> None:  # fmt: skip
        """Have a parent for such programs, then call; also where there will be none."""
        command = read_command(words, environ)
        if command is None:
            self._say(
                f"{_listed(modules)} cannot be held ready: `{shlex.join(words)[:100]}` is not "
                "`python SCRIPT` or `python -m MODULE`; such programs start cold"
            )
            then()
            return
        key, variables = _key(modules, command, environ, folder)
        parent = self._parents.get(key)
        if parent is None:
            if len(self._parents) >= _MOST_PARENTS:
                self._forget(next(iter(self._parents)))
            parent = self._start(key, modules, command, variables, folder)
        parent.wait(then)

    def launcher(self, modules: Sequence[str]) -> Callable[..., int]:
        """What starts a program, in place of `launch`."""

        def launch_warm(words: list[str], environ: dict[str, str], folder: str, output: int) -> int:
            command = read_command(words, environ)
            if command is not None and _exists(command, folder):
                parent = self._parents.get(_key(modules, command, environ, folder)[0])
                if parent is not None and parent.is_ready:
                    try:
                        return parent.fork(_request(command, environ, folder), output)
                    except NotForked as error:
                        parent.close(str(error))
            return launch(words, environ, folder, output)

        return launch_warm

    def stop_waiting(self) -> None:
        """Nothing more begins: who waits is to hear of it."""
        for parent in list(self._parents.values()):
            parent.stop_waiting()

    def keep_with(self, keeper: Keeper) -> None:
        for parent in self._parents.values():
            if parent.pid is not None:
                keeper.began(parent.pid, parent.token)

    def close(self) -> None:
        for key in list(self._parents):
            self._forget(key)

    def _start(
        self, key: tuple[object, ...], modules: Sequence[str], command: PythonCommand,
        variables: dict[str, str], folder: str,
    ) -> _Parent:  # fmt: skip
        began, names = time.monotonic(), _listed(modules)

        def is_ready() -> None:
            seconds = time.monotonic() - began
            self._say(f"{names} imported once, in {seconds:.1f} s: programs begin with it")

        def has_ended(why: str, was_ready: bool) -> None:
            self._keeper().ended(parent.token)
            if not was_ready:
                self._say(f"programs start cold: {names} cannot be held ready: {why}")
                return
            self._deaths += 1
            again = "programs start cold from now on"
            if self._deaths < _MOST_DEATHS:
                del self._parents[key]
                again = "the next trial starts another"
            self._report(f"the process that holds {names} is gone ({why}): {again}")

        self._parents[key] = parent = _Parent(self._loop, is_ready, has_ended)
        self._keeper().begins(parent.token)
        request = {"modules": list(modules), "path": _own_folder(command, folder)}
        parent.start(command.start, variables, folder, request)
        if parent.pid is not None:
            self._children.add(parent.pid)
            self._keeper().began(parent.pid, parent.token)
        return parent

    def _forget(self, key: tuple[object, ...]) -> None:
        parent = self._parents.pop(key)
        parent.close()
        self._keeper().ended(parent.token)

    def _say(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self._report(line)


def _listed(modules: Sequence[str]) -> str:
    return ", ".join(modules)


def _key(
    modules: Sequence[str], command: PythonCommand, environ: Mapping[str, str], folder: str
) -> tuple[tuple[object, ...], dict[str, str]]:
    """What programs of one parent have in common, with the parent's environment.

    Everything that Python, a library or the loader may read while they start, such as the number
    of threads, is the parent's too; programs that differ in it have another parent.
    """
    variables = {
        name: value
        for name, value in environ.items()
        if not name.startswith(_OF_TRIAL) and name not in _OF_RANK
    }
    place = (tuple(command.start), folder, _own_folder(command, folder))
    return (tuple(modules), *place, tuple(sorted(variables.items()))), variables


def _own_folder(command: PythonCommand, folder: str) -> str:
    """What Python puts first on its search path."""
    if command.is_module:
        return os.path.realpath(folder)
    return os.path.dirname(os.path.realpath(os.path.join(folder, command.name)))


def _exists(command: PythonCommand, folder: str) -> bool:
    """Of a script that is not there Python itself is to tell."""
    return command.is_module or os.path.isfile(os.path.join(folder, command.name))


def _request(command: PythonCommand, environ: Mapping[str, str], folder: str) -> dict[str, object]:
    return {
        "words": command.words,
        "name": command.name,
        "is_module": command.is_module,
        "arguments": command.arguments,
        "environ": {**environ, **({"PWD": folder} if command.is_line else {})},
        "folder": folder,
        # Those of the slot: what we start inherits them from us.
        "cpus": sorted(os.sched_getaffinity(0)),
    }


def _adopt_orphans(wanted: bool) -> None:
    """Whether processes below us that lose their parent become our children."""
    import ctypes  # Only for warm starts.

    if ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
