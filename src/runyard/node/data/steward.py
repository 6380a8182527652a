"""The steward of a job on its nodes: a folder on each node's disk, data in it, results out of it.

    steward JOB.json begin PID   in the job's script; PID is the script's own process
    steward JOB.json end         when the work is over, however it went
    steward JOB.json where       prints this node's folder, where it has not the usual name

`begin` removes what dead jobs left, makes the folder where the site gives none, brings the data,
and leaves a process behind that holds the folder: until `end`, or until the script is gone. Where
the job has more nodes, that process has one like itself on each of them. `begin` fails if
any of them does, and the script then ends. Told TERM (the job is cancelled, or its time is up), it
saves results at once, and again at the end.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time

from runyard.node.data.local_folder import LocalFolder, sweep
from runyard.node.system.processes import start_time
from runyard.schedulers.inside import this_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from runyard.schedulers.inside import JobEnvironment

NODE_MARK = "%N"
_READY = "runyard-steward-ready"
# From the job's TERM to its KILL are 30 s; what is not told by then is over.
_AFTER_TERM_SECONDS = 25.0
_LOOK_EVERY = 1.0


def local_folder(environ: Mapping[str, str]) -> str | None:
    """This node's folder, where it is ours to make."""
    folder = _own_folder(environ)
    return None if folder is None else folder.path


def _own_folder(environ: Mapping[str, str]) -> LocalFolder | None:
    pattern = environ.get("RUNYARD_LOCAL")
    if not pattern:
        return None
    base, _, name = pattern.replace(NODE_MARK, this_job(environ).node or "").rpartition("/")
    return LocalFolder(base, name)


def results_name(environ: Mapping[str, str]) -> str:
    """Where results of this job, task and node come to: no two have one name."""
    job = this_job(environ)
    name = job.name or "0"
    return f"{name}-{job.node or ''}" if job.nodes > 1 else name


class Steward:
    """Of one node."""

    def __init__(self, job: dict[str, Any], environ: Mapping[str, str]) -> None:
        staging = job.get("staging") or {}
        self._data: list[str] = staging.get("data") or []
        self._results: list[str] = staging.get("results") or []
        self._environ = environ
        self._folder = _own_folder(environ)

    @property
    def path(self) -> str:
        return self._folder.path if self._folder else this_job(self._environ).folder or ""

    def begin(self) -> None:
        """Make the folder and hold it; OSError."""
        if self._folder is not None:
            for left in sweep(self._folder.usual_base):
                say(f"removed what another job left: {left}")
            self._folder.hold()
            if not self._folder.is_usual:
                usual, path = self._folder.usual_base, self._folder.path
                say(f"{usual} is not a folder of yours; the job's own folder is {path}")
            # The scheduler may kill this process before it could.
            self._folder.remove_when_alone()

    def prepare_data(self) -> str:
        """Have an archive of the data on scratch, once for all nodes; its name.

        Raises OSError or StagingError.
        """
        if not self._data:
            return ""
        from pathlib import Path

        from runyard.node.data.staging import prepare

        return prepare(Path(self._environ["scratch_dir"]), Path(self.path), self._data)

    def bring_data(self, name: str) -> None:
        """Unpack that archive here; OSError or StagingError."""
        if not name:
            return
        from pathlib import Path

        from runyard.node.data.staging import fill

        outcome = fill(Path(self._environ["scratch_dir"]), Path(self.path), name)
        say(f"staging on {self._node}: {outcome}")

    def save_results(self) -> None:
        if not self._results:
            return
        from pathlib import Path

        from runyard.node.data.staging import stage_out

        name = results_name(self._environ)
        try:
            outcome = stage_out(
                Path(self._environ["scratch_dir"]), Path(self.path), name, self._results
            )
        except OSError as error:
            outcome = f"results did not come back: {error}"
        say(f"staging on {self._node}: {outcome}")

    def end(self) -> None:
        self.save_results()
        if self._folder is not None:
            self._folder.release()

    @property
    def _node(self) -> str:
        return this_job(self._environ).node or os.uname().nodename


class Others:
    """The stewards of the job's other nodes: one step, over all of them."""

    def __init__(self, words: list[str], job: JobEnvironment, *, alone: bool) -> None:
        self._words = words
        self._job = job
        self._count = 0 if alone else job.nodes - 1
        self._process: Any = None

    def begin(self, name: str) -> None:
        """Start them, each to bring the data of this name; what they say goes to the log."""
        if self._count < 1:
            return
        import subprocess

        # The folder of other nodes is theirs to find.
        self._process = subprocess.Popen(
            [*self._job.others_command(self._count), *self._words, "stay", name],
            env=self._job.step_environ(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip

    def are_ready(self) -> bool:
        """Whether all of them are, when all have said so, or one cannot be."""
        if self._process is None:
            return True
        ready = 0
        for line in self._process.stdout:
            ready += line.strip() == _READY
            if ready == self._count:
                return True
        return False

    def tell(self, number: int) -> None:
        """Send a signal to all of them."""
        if self._process is not None:
            with contextlib.suppress(OSError):
                self._process.send_signal(number)

    def end(self) -> None:
        if self._process is None:
            return
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.close()
        self.tell(signal.SIGUSR1)
        self._process.wait()


def say(text: str) -> None:
    with contextlib.suppress(OSError):
        print(f"runyard: {text}", file=sys.stderr, flush=True)


def begin(steward: Steward, others: Others, script: int) -> int:
    """Begin, and leave a process behind that stays as long as the script does."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        code = 1
        try:
            code = _begin_and_stay(steward, others, script, theirs)
        finally:
            os._exit(code)
    os.close(theirs)
    if os.read(ours, 8) == b"ready":
        with open(_note(steward), "w", encoding="utf-8") as file:
            file.write(str(pid))
        return 0
    os.waitpid(pid, 0)
    return 1


def _begin_and_stay(steward: Steward, others: Others, script: int, word: int) -> int:
    """What the process does that is left behind."""
    os.setsid()
    bell = _Bell()
    try:
        steward.begin()
        name = steward.prepare_data()
        others.begin(name)  # They unpack while this node does.
        steward.bring_data(name)
    except (OSError, _staging_error()) as error:
        _is_not_ready(error)
        others.end()
        with contextlib.suppress(OSError):
            steward.end()
        return 1
    if not others.are_ready():
        say("the job ends: not every node is ready for it")
        others.end()
        steward.end()
        return 1
    os.write(word, b"ready")
    os.close(word)
    bell.script = script
    _wait_for_end(bell, steward, others)
    others.end()
    steward.end()
    return 0


def _staging_error() -> type[Exception]:
    from runyard.node.data.staging import StagingError

    return StagingError


def _is_not_ready(error: Exception) -> None:
    node = this_job().node or "this node"
    say(f"the job ends: {node} is not ready: {error}")


def _wait_for_end(bell: _Bell, steward: Steward, others: Others | None) -> None:
    deadline: float | None = None
    while True:
        rung = bell.wait(deadline)
        if rung != signal.SIGTERM:
            return
        if deadline is None:
            deadline = time.monotonic() + _AFTER_TERM_SECONDS
            if others is not None:
                others.tell(signal.SIGTERM)
            steward.save_results()


def stay(steward: Steward, name: str) -> int:
    """On another node: begin, say so, and stay until USR1, or until nobody asks any more."""
    bell = _Bell()
    try:
        steward.begin()
        steward.bring_data(name)
    except (OSError, _staging_error()) as error:
        _is_not_ready(error)
        with contextlib.suppress(OSError):
            steward.end()
        return 1
    print(_READY, flush=True)
    _wait_for_end(bell, steward, None)
    steward.end()
    return 0


class _Bell:
    """Signals, and the end of the job's script, as something to wait for."""

    def __init__(self) -> None:
        self.script: int | None = None
        self._heard, written = os.pipe()
        os.set_blocking(written, False)
        for number in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGUSR2, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(written, warn_on_full_buffer=False)

    def wait(self, deadline: float | None) -> int:
        """The signal that came; 0 when the script has ended, or it is late."""
        while deadline is None or time.monotonic() < deadline:
            # Looked at and not waited for: kernels of older clusters know no pidfd.
            ready, _, _ = select.select([self._heard], [], [], _LOOK_EVERY)
            if ready:
                numbers = os.read(self._heard, 64)
                return signal.SIGUSR1 if signal.SIGUSR1 in numbers else numbers[0]
            if self.script is not None and start_time(self.script) is None:
                return 0
        return 0


def _note(steward: Steward) -> str:
    """Where the number stands of the process that was left behind."""
    return f"{steward.path}/.runyard-steward-{this_job().step_id or 'batch'}"


def end(steward: Steward) -> int:
    """Have the process that was left behind end its work, and wait for it."""
    try:
        with open(_note(steward), encoding="utf-8") as file:
            pid = int(file.read())
        os.kill(pid, signal.SIGUSR1)
    except (OSError, ValueError):
        return 0  # It has ended already.
    while start_time(pid) is not None:
        time.sleep(0.02)
    return 0


def main(words: list[str] | None = None) -> int:
    file, what, *rest = sys.argv[1:] if words is None else words
    job: dict[str, Any] = {}
    with contextlib.suppress(FileNotFoundError), open(file, encoding="utf-8") as opened:
        job = json.load(opened)
    if "bare" in rest:
        job.pop("staging", None)
    steward = Steward(job, os.environ)
    if what == "stay":
        return stay(steward, rest[0])
    if what == "end":
        return end(steward)
    if what == "where":
        print(steward.path)
        return 0
    alone = "alone" in rest or "bare" in rest
    start = [sys.executable, *_start_words(file)]
    return begin(steward, Others(start, this_job(), alone=alone), int(rest[0]))


def _start_words(file: str) -> list[str]:
    source = os.path.abspath(f"{os.path.dirname(__file__)}/../../..")
    start = (
        f"import sys; sys.path.insert(0, {source!r}); "
        "from runyard.node.data.steward import main; sys.exit(main())"
    )
    return ["-I", "-S", "-c", start, file]


if __name__ == "__main__":
    sys.exit(main())
