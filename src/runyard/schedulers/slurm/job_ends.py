"""When the user's jobs end: one `squeue` for all agents that share a state folder.

The last answer is a file, `job-ends/CLUSTER` in the state folder, with a number that grows. Who
has seen the same number for 15 s creates the file `CLUSTER.NUMBER.TRY` for the next number. Only
one process can create it, also on NFS; that process asks, and replaces the answer by a rename. If
it dies, another one goes on with the next try.

Ages are measured by each process's own monotonic clock, because the clocks of nodes and of the file
server differ. Nothing here waits: `look` returns at once. The standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping
    from typing import Any

# One poll in 15 s, as for `Scheduler.poll`.
FRESH_SECONDS = 15.0
# How long squeue may take. A busy controller answers after minutes, or not at all.
_ASK_SECONDS = 30.0
_KILL_SECONDS = 1.0
# After this long, whoever has the right to ask is dead.
_RIGHT_SECONDS = _ASK_SECONDS + FRESH_SECONDS
# Clocks of nodes differ by less: an answer that is older than this is old by every clock.
_CLOCK_SECONDS = 120.0
# More than of any time that a calendar can show.
_MOST_DIGITS = 11
FIELDS = "JobID:24,RestartCnt:12,StartTime:24,EndTime:24,PreemptTime:24"


class Row:
    """A running job in epoch seconds, by the controller's clock."""

    __slots__ = ("end", "preempted_at", "restarts", "start")

    def __init__(
        self, restarts: int, start: float, end: float | None, preempted_at: float | None
    ) -> None:
        self.restarts = restarts
        self.start = start
        self.end = end
        self.preempted_at = preempted_at

    def to_json(self) -> list[float | None]:
        return [self.restarts, self.start, self.end, self.preempted_at]


class JobEnds:
    """One process's view of the shared answer. `look` again and again: it reads, and it asks where
    that is this process's turn."""

    def __init__(self, home: str, cluster: str, environ: Mapping[str, str] | None = None) -> None:
        self._folder = f"{home}/job-ends"
        name = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in cluster)
        self._file = f"{self._folder}/{name}"
        self._environ = os.environ if environ is None else environ
        self._number = -1
        self._rows: dict[str, Row] = {}
        self._fresh_until = 0.0
        self._right: str | None = None
        """The file of whoever may ask, as long as there is no answer; and since when we see it."""
        self._right_seen_at = 0.0
        self._try = 0
        self._own_right: str | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._output = -1
        self._asked_at = 0.0
        self._has_asked_alone = False

    @property
    def is_asking(self) -> bool:
        """Whether this process waits for squeue: look again soon."""
        return self._process is not None

    def look(self, job_id: str) -> Row | None:
        """What is known of a job, which may be old. None: nothing."""
        now = time.monotonic()
        if self._process is not None:
            self._end_asking(now)
        else:
            self._read(now)
            if now >= self._fresh_until:
                self._ask(now)
        return self._rows.get(job_id)

    def close(self) -> None:
        """Leave the asking to others."""
        if self._process is not None:
            _kill(self._process)
            self._process = None
            os.close(self._output)
        self._drop_right()

    def _read(self, now: float) -> None:
        number, rows, written_at = self._content()
        if number == self._number:
            return
        is_first = self._number < 0
        self._number, self._rows = number, rows
        self._right, self._try = None, 0
        if number == 0:
            self._fresh_until = now
        elif is_first:
            is_old = abs(time.time() - written_at) > FRESH_SECONDS + _CLOCK_SECONDS
            # Between the two nobody knows: then it is watched for as long as a fresh one.
            self._fresh_until = now if is_old else now + FRESH_SECONDS
        else:
            self._fresh_until = now + FRESH_SECONDS

    def _content(self) -> tuple[int, dict[str, Row], float]:
        """Number, rows and time of the answer; the number is 0 where there is none."""
        try:
            # Opened, not only looked at: NFS then asks its server.
            with open(self._file, encoding="utf-8") as file:
                content = json.load(file)
                written_at = os.fstat(file.fileno()).st_mtime
            rows = {name: Row(*values) for name, values in content["jobs"].items()}
            return int(content["number"]), rows, written_at
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return 0, {}, 0.0

    def _ask(self, now: float) -> None:
        """Start squeue, if nobody else has the right to."""
        right = f"{self._file}.{self._number + 1}.{self._try}"
        try:
            if not os.path.isdir(self._folder):
                _make(self._folder)
            os.close(os.open(right, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            if self._right != right:
                self._right, self._right_seen_at = right, now
                seconds = _age(right)
            else:
                seconds = now - self._right_seen_at + _CLOCK_SECONDS
            if seconds >= _RIGHT_SECONDS + _CLOCK_SECONDS:
                self._try += 1
            return
        except OSError:
            # The disk is full, or may not be written to. Then each asks for itself, but only once.
            if self._has_asked_alone:
                return
            self._has_asked_alone = True
        else:
            self._own_right = right
            if self._content()[0] != self._number:
                # Somebody has asked since we looked, and has removed the right of that time.
                self._drop_right()
                return
        self._start_squeue(now)

    def _start_squeue(self, now: float) -> None:
        import subprocess

        # A user's own settings would change the columns or leave out jobs.
        environ = {
            name: value for name, value in self._environ.items() if not name.startswith("SQUEUE_")
        }
        words = [
            "squeue", "--noheader", f"--user={os.getuid()}", "--states=RUNNING", "--Format", FIELDS
        ]  # fmt: skip
        # In memory: a pipe that nobody reads is full after some hundred jobs.
        self._output = os.memfd_create("squeue")
        self._asked_at = now
        try:
            self._process = subprocess.Popen(
                words,
                env={**environ, "SLURM_TIME_FORMAT": "%s"},
                stdin=subprocess.DEVNULL, stdout=self._output, stderr=subprocess.DEVNULL,
                # What ends the agent's group is not for it, nor Ctrl-C.
                start_new_session=True,
            )  # fmt: skip
        except OSError:
            self._publish(None, now)

    def _end_asking(self, now: float) -> None:
        assert self._process is not None
        code = self._process.poll()
        if code is None and now - self._asked_at < _ASK_SECONDS:
            return
        if code is None:
            _kill(self._process)
        self._process = None
        self._publish(None if code or code is None else os.pread(self._output, 1 << 28, 0), now)

    def _publish(self, output: bytes | None, now: float) -> None:
        """For all others. Where nobody answered, the old rows stay: all wait again before the next
        one asks."""
        os.close(self._output)
        if output is not None:
            self._rows = read_rows(output.decode(errors="replace"))
        self._fresh_until = now + FRESH_SECONDS
        content: dict[str, Any] = {
            "number": self._number + 1,
            "jobs": {name: row.to_json() for name, row in self._rows.items()},
        }
        new = f"{self._file}.new.{os.uname().nodename}.{os.getpid()}"
        try:
            # Who took us for dead, and asked, has the newer answer.
            if self._own_right is not None and self._content()[0] == self._number:
                with open(new, "w", encoding="utf-8") as file:
                    json.dump(content, file)
                os.replace(new, self._file)
                self._number += 1
                self._right, self._try = None, 0
                self._remove_rights()
        except OSError:
            _remove(new)
        self._drop_right()

    def _drop_right(self) -> None:
        if self._own_right is not None:
            _remove(self._own_right)
            self._own_right = None

    def _remove_rights(self) -> None:
        """Those for this answer, and those of the dead. One for the next number may be there."""
        start = f"{os.path.basename(self._file)}."
        with contextlib.suppress(OSError):
            for name in os.listdir(self._folder):
                number = name[len(start) :].partition(".")[0]
                if name.startswith(start) and number.isdecimal() and int(number) <= self._number:
                    _remove(f"{self._folder}/{name}")


def read_rows(text: str) -> dict[str, Row]:
    """What squeue printed, by job; a line that makes no sense is passed over."""
    rows = {}
    for line in text.splitlines():
        words = line.split()
        with contextlib.suppress(ValueError):
            job_id, restarts, start, end, preempted_at = words
            times = (_time(start) or 0.0, _time(end), _time(preempted_at))
            rows[job_id] = Row(int(restarts), *times)
    return rows


def _time(word: str) -> float | None:
    """None where there is no such time: NONE, N/A."""
    is_time = word.isdecimal() and word != "0" and len(word) <= _MOST_DIGITS
    return float(word) if is_time else None


def _age(path: str) -> float:
    """By two clocks. 0 where the file is gone."""
    with contextlib.suppress(OSError):
        return time.time() - os.stat(path).st_mtime
    return 0.0


def _make(folder: str) -> None:
    # Of several that make it, one does. A state folder is never made here: it is not only this.
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, mode=0o700)


def _kill(process: subprocess.Popen[bytes]) -> None:
    import subprocess

    process.kill()
    # A process that waits for a disk outlives it.
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_KILL_SECONDS)


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
