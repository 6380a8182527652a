"""Slurm's commands, run as they are: their words in every refusal, and patience with a busy one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from runyard.schedulers.errors import SchedulerError, SchedulerMissing

# How long a controller that does not answer is waited for, all in all.
PATIENCE_SECONDS = 120.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0
ANSWER_SECONDS = 120.0
_SLOW_SECONDS = 5.0
# The controller is overloaded, restarting, or handing over to its backup: the same words a moment
# later may be answered.
_BUSY = re.compile(
    r"unable to contact slurm controller|socket timed out|connection refused|connection reset"
    r"|zero bytes were transmitted|temporarily unable|resource temporarily unavailable"
    r"|unable to establish controller machine|in standby mode|communication connection failure"
    r"|connection timed out",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Answer:
    """What a command of Slurm's said."""

    code: int
    said: str
    complained: str

    @property
    def is_good(self) -> bool:
        return self.code == 0

    @property
    def is_busy(self) -> bool:
        """Whether it is worth asking again."""
        return self.code != 0 and _BUSY.search(self.complained) is not None

    @property
    def words(self) -> str:
        """The complaint in one line, without the command's name before each part."""
        lines = [line.strip() for line in (self.complained or self.said).splitlines()]
        bare = [re.sub(r"^\w+: (error: )?", "", line) for line in lines if line]
        return "; ".join(dict.fromkeys(bare)) or f"exit code {self.code}"


def ask(
    words: Sequence[str],
    *,
    stdin: str = "",
    environ: Mapping[str, str] | None = None,
    umask: int = -1,
    patience: float = PATIENCE_SECONDS,
    seconds: float = ANSWER_SECONDS,
    notice: Callable[[str], None] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Answer:
    """Run a command until it is answered, by a yes or by a no; not one that must not be done twice
    (`sending.py` sends jobs). Where the controller stays silent, the last answer says so."""
    end, pause = time.monotonic() + patience, _FIRST_PAUSE
    while True:
        with _told_when_slow(words[0], notice):
            answer = _run(words, stdin, environ, umask, seconds)
        if not answer.is_busy or time.monotonic() + pause > end:
            return answer
        if notice is not None:
            notice(f"Slurm is busy ({answer.words}); asking again in {pause:.0f} s")
        sleep(pause)
        pause = min(_LONGEST_PAUSE, pause * 2)


@contextmanager
def _told_when_slow(command: str, notice: Callable[[str], None] | None) -> Iterator[None]:
    """Whoever waits for an answer hears what for: without a configuration, sbatch takes a minute
    to say so."""
    if notice is None:
        yield
        return
    timer = threading.Timer(_SLOW_SECONDS, notice, [f"waiting for Slurm's `{command}` to answer"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def for_reading(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a command whose answer we read: whatever the user likes to see, one form.

    Not of one that submits: a job would inherit it.
    """
    liked = ("SQUEUE_", "SINFO_", "SACCT_", "SREPORT_", "SLURM_TIME_FORMAT")
    given = os.environ if environ is None else environ
    kept = {name: value for name, value in given.items() if not name.startswith(liked)}
    # Lists of an array's tasks are cut after 64 characters unless that is 0.
    forms = {"SLURM_TIME_FORMAT": "standard", "SLURM_BITSTR_LEN": "0", "LC_ALL": "C.UTF-8"}
    return {**kept, **forms}


def refused(what: str, answer: Answer, mend: str | None = None) -> SchedulerError:
    if answer.is_busy:
        mend = "Slurm's controller does not answer: wait a little, then type the same once more"
    return SchedulerError(what, said=answer.words, mend=mend)


def find_slurm(environ: Mapping[str, str] | None = None) -> str:
    """Where `sbatch` is."""
    found = shutil.which("sbatch", path=(environ or os.environ).get("PATH"))
    if found is None:
        raise _missing("sbatch")
    return found


def _run(
    words: Sequence[str],
    stdin: str,
    environ: Mapping[str, str] | None,
    umask: int,
    seconds: float,
) -> Answer:
    try:
        done = subprocess.run(
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
        raise _missing(words[0]) from None
    except subprocess.TimeoutExpired:
        return Answer(1, "", f"{words[0]}: socket timed out: no answer in {seconds:.0f} s")
    except OSError as error:
        raise SchedulerError(f"{words[0]} cannot be run", said=error.strerror) from error
    return Answer(done.returncode, done.stdout, done.stderr)


def _missing(word: str) -> SchedulerMissing:
    return SchedulerMissing(
        f"there is no Slurm here: no `{word}` on the path",
        mend="on a login node of the cluster this works; on this machine `runyard run`, `sweep` "
        "and `farm` work without it",
    )
