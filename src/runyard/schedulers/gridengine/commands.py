"""Running Grid Engine's commands: `qsub`, `qstat`, `qdel`, `qconf`, `qhost`."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from runyard.schedulers.errors import SchedulerError, SchedulerMissing
from runyard.schedulers.protocol import ANSWER_SECONDS, PATIENCE_SECONDS, Notice

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 15.0
# The master is overloaded or restarting: the same command may work a moment later.
_BUSY = re.compile(
    r"commlib error|unable to (?:contact|send message to) qmaster|got no response"
    r"|unable to connect|connection refused|timed? ?out|qmaster is not (?:running|reachable)"
    r"|failed receiving gdi request|can't resolve .*qmaster",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Answer:
    """What a command printed and its exit code."""

    code: int
    output: str
    complaint: str

    @property
    def is_good(self) -> bool:
        return self.code == 0

    @property
    def is_busy(self) -> bool:
        """Whether it is worth asking again."""
        return self.code != 0 and _BUSY.search(f"{self.complaint}\n{self.output}") is not None

    @property
    def words(self) -> str:
        """The complaint in one line."""
        lines = [line.strip() for line in (self.complaint or self.output).splitlines()]
        return "; ".join(dict.fromkeys(filter(None, lines))) or f"exit code {self.code}"


def ask(
    words: Sequence[str],
    environ: Mapping[str, str],
    *,
    stdin: str = "",
    patience: float = PATIENCE_SECONDS,
    seconds: float = ANSWER_SECONDS,
    notice: Notice | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Answer:
    """Run a command until the master answers; not for one that must not be done twice."""
    end, pause = time.monotonic() + patience, FIRST_PAUSE
    while True:
        answer = run(words, environ, stdin=stdin, seconds=seconds)
        if not answer.is_busy or time.monotonic() + pause > end:
            return answer
        if notice is not None:
            notice(f"Grid Engine is busy ({answer.words}); asking again in {pause:.0f} s")
        sleep(pause)
        pause = min(LONGEST_PAUSE, pause * 2)


def run(
    words: Sequence[str],
    environ: Mapping[str, str],
    *,
    stdin: str = "",
    seconds: float = ANSWER_SECONDS,
) -> Answer:
    """Run a command once."""
    try:
        process = subprocess.run(
            list(words),
            input=stdin,
            env=dict(environ),
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError:
        raise missing(words[0]) from None
    except subprocess.TimeoutExpired:
        return Answer(1, "", f"{words[0]} timed out: no answer in {seconds:.0f} s")
    except OSError as error:
        raise SchedulerError(f"{words[0]} cannot be run", said=error.strerror) from error
    return Answer(process.returncode, process.stdout, process.stderr)


def missing(command: str) -> SchedulerMissing:
    return SchedulerMissing(
        f"there is no Grid Engine here: no `{command}` on the path",
        mend="on a submit host of the cluster this works; on this machine `runyard run`, `sweep` "
        "and `farm` work without it",
    )


def ask_xml(
    words: Sequence[str],
    environ: Mapping[str, str],
    what: str,
    *,
    patience: float = PATIENCE_SECONDS,
    seconds: float = ANSWER_SECONDS,
) -> ElementTree.Element:
    """The XML that a command prints; SchedulerError, which begins with `what`, if it fails."""
    answer = ask(words, environ, patience=patience, seconds=seconds)
    if not answer.is_good:
        raise refused(what, answer)
    try:
        # The master's own words, about the user's own jobs.
        return ElementTree.fromstring(answer.output)  # noqa: S314
    except ElementTree.ParseError as error:
        raise SchedulerError(what, said=f"{words[0]} printed no XML: {error}") from error


def refused(what: str, answer: Answer, mend: str | None = None) -> SchedulerError:
    if answer.is_busy:
        mend = "Grid Engine's master does not answer: wait a little, then run the same again"
    return SchedulerError(what, said=answer.words, mend=mend)
