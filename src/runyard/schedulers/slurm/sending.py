"""One script into Slurm's queue: once, although the controller may lose its answer.

Each job carries a mark of its own. After a lost answer the queue and accounting are asked for that
mark, and nothing is sent again before the queue has answered that it is not there.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from runyard.schedulers import commands
from runyard.schedulers.commands import send_once
from runyard.schedulers.errors import SchedulerMissing
from runyard.schedulers.slurm.commands import Answer, ask, for_reading

_OWN_COMMENT = re.compile(r"^#SBATCH --comment=", re.MULTILINE)
_NAME = re.compile(r"^#SBATCH --job-name=\"?([^\"\n]*)", re.MULTILINE)


def mark_of(key: str) -> str:
    return commands.mark_of(key, ":")


def command(text: str, key: str, options: Sequence[str] = ()) -> list[str]:
    """What is typed, with the script on its standard input."""
    # The mark first: a folder among the options may have a line end in its name.
    return ["sbatch", "--parsable", *_carrier(text, mark_of(key)), *options]


def closed_umask() -> int:
    """This process's umask, without anything for others.

    Slurm takes a job's umask from `sbatch`, and opens the job's log with it.
    """
    umask = os.umask(0o077)
    os.umask(umask)
    return umask | 0o007


def try_out(text: str, key: str, options: Sequence[str], environ: Mapping[str, str]) -> Answer:
    """What Slurm would say; nothing is submitted."""
    words = [*command(text, key, options), "--test-only"]
    answer = ask(words, stdin=text, environ=environ, patience=0.0)
    # Its name for the same refusal, which is quoted in the words of the real one.
    complaint = answer.complaint.replace("allocation failure:", "Batch job submission failed:")
    return replace(answer, complaint=complaint)


def send(
    text: str,
    key: str,
    *,
    options: Sequence[str] = (),
    environ: Mapping[str, str],
    may_be_there: bool = False,
    notice: Callable[[str], None] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Answer:
    """Send a script; a good answer says the job's id and no more.

    `key` names this job among all that were ever sent. `may_be_there`: an earlier command may have
    sent it and not have heard of it. An answer that is busy means that nobody knows: the same key
    must be sent with `may_be_there` the next time.
    """
    mark, words = mark_of(key), command(text, key, options)

    def send_it() -> Answer:
        umask = closed_umask()
        return _read_id(
            ask(words, stdin=text, environ=environ, umask=umask, patience=0.0, notice=notice)
        )

    return send_once(
        send_it,
        lambda: _find(mark, environ),
        lambda ids: Answer(0, _keep_first(ids, environ), ""),
        Answer(1, "", "squeue: error: Slurm does not answer (Socket timed out)"),
        may_be_there=may_be_there,
        notice=notice,
        sleep=sleep,
    )


def _carrier(text: str, mark: str) -> list[str]:
    """A comment; where the script has one, which may mean something to the site, the name."""
    if _OWN_COMMENT.search(text) is None:
        return [f"--comment={mark}"]
    name = _NAME.search(text)
    return [f"--job-name={name[1] if name else 'job'}.{mark}"]


def _read_id(answer: Answer) -> Answer:
    """Behind greetings of the site, and before the cluster's name."""
    if not answer.is_good:
        return answer
    job_id = answer.output.strip().rpartition("\n")[2].partition(";")[0]
    if not job_id.isdecimal():
        return Answer(1, "", f"sbatch: error: it answered {answer.output.strip()!r}")
    return Answer(0, job_id, answer.complaint)


def _find(mark: str, environ: Mapping[str, str]) -> list[str] | None:
    """The jobs that carry the mark, the first one first; None where nobody answers."""
    env = for_reading(environ)
    words = ["squeue", "--me", "--noheader", "--states=all", "--format=%F|%k|%j"]
    queue = ask(words, environ=env, patience=0.0)
    if not queue.is_good:
        return None
    ids = _marked(queue.output, mark)
    if not ids:
        # One that was quick has left the queue. Comments are kept by some sites only, the line that
        # was typed by all (since 21.08).
        fields = "--format=JobID,SubmitLine,Comment,JobName"
        words = ["sacct", "--allocations", "--parsable2", "--noheader", "--starttime=now-7days"]
        with contextlib.suppress(SchedulerMissing):  # Not every site installs it.
            records = ask([*words, fields], environ=env, patience=0.0)
            if records.is_busy:
                return None
            ids = _marked(records.output, mark)
    return ids


def _marked(text: str, mark: str) -> list[str]:
    lines = [line.partition("|") for line in text.splitlines() if mark in line]
    ids = {re.split(r"[_+.]", job_id)[0].strip() for job_id, _, _ in lines}
    numbers = (job_id for job_id in ids if job_id.isdecimal())
    return sorted(numbers, key=lambda number: (len(number), number))


def _keep_first(ids: Sequence[str], environ: Mapping[str, str]) -> str:
    if ids[1:]:
        ask(["scancel", *ids[1:]], environ=environ)
    return ids[0]
