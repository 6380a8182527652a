"""A scheduler's commands, run as they are: their words in every refusal, patience with a busy one,
and a job that is sent once, although its answer may be lost."""

from __future__ import annotations

import hashlib
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from runyard.schedulers.errors import SchedulerError, SchedulerMissing
from runyard.schedulers.protocol import PATIENCE, Notice

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0
_SLOW_SECONDS = 5.0


@dataclass(frozen=True)
class Answer:
    """What a command printed, and its exit code. Each scheduler has a subclass."""

    code: int
    output: str
    complaint: str

    title: ClassVar[str]
    busy: ClassVar[re.Pattern[str]]
    """What is said while the scheduler is overloaded or restarting: the same question may be
    answered a moment later."""
    silent: ClassVar[str]
    """Advice where it stays busy."""
    prefix: ClassVar[str] = ""
    """What stands before each line of a complaint, as a pattern."""
    where: ClassVar[str]
    """The machines that have the commands."""

    @property
    def is_good(self) -> bool:
        return self.code == 0

    @property
    def is_busy(self) -> bool:
        """Whether it is worth asking again."""
        return self.code != 0 and self.busy.search(f"{self.complaint}\n{self.output}") is not None

    @property
    def words(self) -> str:
        """The complaint in one line."""
        lines = [line.strip() for line in (self.complaint or self.output).splitlines()]
        bare = [re.sub(self.prefix, "", line) for line in lines if line]
        return "; ".join(dict.fromkeys(bare)) or f"exit code {self.code}"

    def refused(self, what: str, mend: str | None = None) -> SchedulerError:
        return SchedulerError(what, said=self.words, mend=self.silent if self.is_busy else mend)

    @classmethod
    def missing(cls, command: str) -> SchedulerMissing:
        return SchedulerMissing(
            f"there is no {cls.title} here: no `{command}` on the path",
            mend=f"on a {cls.where} of the cluster this works; on this machine `runyard run`, "
            "`sweep` and `farm` work without it",
        )


A = TypeVar("A", bound=Answer)


def mark_of(key: str, separator: str) -> str:
    """What a job carries by which it is found again; the same for the same key."""
    digest = hashlib.sha256(key.encode(errors="surrogateescape")).hexdigest()
    return f"runyard{separator}{digest[:16]}"


def ask(
    kind: type[A],
    words: Sequence[str],
    *,
    stdin: str = "",
    environ: Mapping[str, str] | None = None,
    umask: int = -1,
    patience: float = PATIENCE,
    seconds: float = PATIENCE,
    notice: Notice | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> A:
    """Run a command until it is answered, by a yes or by a no; not one that must not be done twice
    (`send_once`). Where the scheduler stays silent, the last answer says so."""
    end, pause = time.monotonic() + patience, _FIRST_PAUSE
    while True:
        with _slow_notice(f"waiting for {kind.title}'s `{words[0]}` to answer", notice):
            answer = _run(kind, words, stdin, environ, umask, seconds)
        if not answer.is_busy or time.monotonic() + pause > end:
            return answer
        _tell_busy(answer, pause, notice)
        sleep(pause)
        pause = min(_LONGEST_PAUSE, pause * 2)


def send_once(
    send: Callable[[], A],
    find: Callable[[], list[str] | None],
    found: Callable[[list[str]], A],
    lost: A,
    *,
    may_be_there: bool,
    notice: Notice | None,
    sleep: Callable[[float], None],
) -> A:
    """Send a job until it is answered, and look for it before it is sent again.

    A lost answer does not say whether the job was taken, and a scheduler that was stopped for a
    while takes every request that piled up meanwhile. `find`: the jobs with its mark, None where
    nobody answers; `found`: keeps the first of them. `lost` is the answer where nothing was sent.
    """
    answer = lost
    is_lost, waited, pause, began = may_be_there, 0.0, _FIRST_PAUSE, time.monotonic()
    is_answered, tries = False, 0
    while True:
        ids = find() if is_lost else []
        if ids and len(ids) < tries:
            # Another may be on its way still. It has until the next look.
            tries = 0
            sleep(pause)
            continue
        if ids:
            return found(ids)
        if ids is not None:
            if is_answered:
                return answer
            answer = send()
            is_answered, tries = not answer.is_busy, tries + 1
            if is_answered and not is_lost:
                return answer
            if is_answered:
                continue  # The lost one may have come through since the queue was asked.
            is_lost = True
        if max(waited, time.monotonic() - began) + pause > PATIENCE:
            return answer
        _tell_busy(answer, pause, notice)
        sleep(pause)
        waited, pause = waited + pause, min(_LONGEST_PAUSE, pause * 2)


def _tell_busy(answer: Answer, pause: float, notice: Notice | None) -> None:
    if notice is not None:
        notice(f"{answer.title} is busy ({answer.words}); asking again in {pause:.0f} s")


@contextmanager
def _slow_notice(text: str, notice: Notice | None) -> Iterator[None]:
    """Whoever waits for an answer hears what for: some commands take a minute to fail."""
    if notice is None:
        yield
        return
    timer = threading.Timer(_SLOW_SECONDS, notice, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _run(
    kind: type[A],
    words: Sequence[str],
    stdin: str,
    environ: Mapping[str, str] | None,
    umask: int,
    seconds: float,
) -> A:
    try:
        process = subprocess.run(
            list(words),
            input=stdin,
            env=None if environ is None else dict(environ),
            umask=umask,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError:
        raise kind.missing(words[0]) from None
    except subprocess.TimeoutExpired:
        return kind(1, "", f"{words[0]}: socket timed out: no answer in {seconds:.0f} s")
    except OSError as error:
        raise SchedulerError(f"{words[0]} cannot be run", said=error.strerror) from error
    return kind(process.returncode, process.stdout, process.stderr)
