"""One script into Grid Engine's queue: once, although the master's answer may be lost.

Each job carries a mark, made of its key, as its account string (`-A`), which the queue and
accounting both show. After a lost answer they are asked for the mark before anything is sent again.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Mapping, Sequence

from runyard.schedulers import commands
from runyard.schedulers.commands import send_once
from runyard.schedulers.errors import NoAccounting, SchedulerError, SchedulerSilent
from runyard.schedulers.gridengine.accounting import find_marked
from runyard.schedulers.gridengine.commands import Answer, ask, ask_xml
from runyard.schedulers.gridengine.header import job_name
from runyard.schedulers.gridengine.queue import ask_queue, cancel
from runyard.schedulers.gridengine.script_words import WORDS
from runyard.schedulers.gridengine.variables import clean_environment
from runyard.schedulers.jobs import Batch, Reply
from runyard.schedulers.protocol import Notice

_TOO_MANY_JOBS = 25
_HAS_ACCOUNT = re.compile(r"^#\$.* -A ", re.MULTILINE)
_HAS_SHELL = re.compile(r"^#\$.* -S ", re.MULTILINE)
_HAS_NAME = re.compile(r"^#\$.* -N (\S+)", re.MULTILINE)
_SHEBANG = re.compile(r"#!\s*(/\S+)(?:[ \t]+(\S+))?")


def mark_of(key: str) -> str:
    return commands.mark_of(key, ".")


def command(batch: Batch) -> list[str]:
    """What is run, with the script on its standard input."""
    text, mark = batch.text, mark_of(batch.key)
    words = ["qsub", "-terse", "-V"]
    # Most queues pass over the script's first line, and their own shell is csh.
    if _HAS_SHELL.search(text) is None:
        words += ["-S", _shell(text)]
    match = _HAS_NAME.search(text)
    name = match[1] if match else job_name(batch.name)
    # The account string may be what the site bills by: then the name carries the mark.
    if _HAS_ACCOUNT.search(text) is not None:
        words += ["-N", f"{name}.{mark}"]
    else:
        words += ["-A", mark, *([] if match else ["-N", name])]
    # However the one before ends: whether there is work left is found out in the job.
    words += [] if batch.after is None else ["-hold_jid", batch.after]
    if batch.folder is not None and not WORDS.is_plain(batch.folder):
        words += ["-wd", str(batch.folder)]
    return [*words, *([] if batch.node is None else ["-l", f"h={batch.node}"])]


def with_path(text: str) -> str:
    """The script, with the PATH of the shell that sends it: many sites start a job's shell as a
    login shell, which sets its own."""
    first, _, rest = text.partition("\n")
    if not re.fullmatch(r"/\S*/(sh|bash|dash|ksh|zsh)", _shell(text)):
        return text
    path = 'PATH="${SGE_O_PATH:-$PATH}"; export PATH'
    return f"{first}\n{path}\n{rest}" if first.startswith("#!") else f"{path}\n{text}"


def send(
    batch: Batch,
    environ: Mapping[str, str],
    *,
    notice: Notice | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Reply:
    """Send a job; `Scheduler.submit` says what is guaranteed."""
    inherited, words, mark = clean_environment(environ), command(batch), mark_of(batch.key)
    text = with_path(batch.text)
    answer = send_once(
        lambda: ask(words, environ=inherited, stdin=text, patience=0.0, notice=notice),
        lambda: _find(mark, inherited),
        lambda ids: Answer(0, _keep_first(ids, inherited), ""),
        Answer(1, "", "qstat: got no response"),
        may_be_there=batch.may_be_there,
        notice=notice,
        sleep=sleep,
    )
    return reply_of(answer, batch.name)


def try_out(batch: Batch, environ: Mapping[str, str]) -> Reply:
    """What Grid Engine would say; nothing is submitted."""
    words, script = [*command(batch), "-w", "v"], with_path(batch.text)
    answer = ask(words, environ=clean_environment(environ), stdin=script, patience=0.0)
    text = f"{answer.output}\n{answer.complaint}"
    if answer.is_good and "no suitable queue" not in text:
        return Reply("taken", words=answer.words)
    return reply_of(Answer(answer.code or 1, "", text.strip()), batch.name)


def reply_of(answer: Answer, name: str) -> Reply:
    if answer.is_good:
        # 123, or 123.1-80:1 of an array; behind greetings of the site.
        job_id = answer.output.strip().rpartition("\n")[2].partition(".")[0]
        if job_id.isdecimal():
            return Reply("taken", job_id)
        answer = Answer(1, "", f"qsub printed {answer.output.strip()!r}")
    if answer.is_busy:
        error: SchedulerError = SchedulerSilent(
            f"Grid Engine does not say whether it took the job {name}",
            said=answer.words,
            mend="wait until `qstat` answers; run the same again if the job is not there",
        )
        return Reply("unknown", words=answer.words, error=error)
    error = answer.refused(
        f"Grid Engine does not take the job {name}; nothing was submitted",
        _mend(answer.words),
    )
    is_full = answer.code == _TOO_MANY_JOBS
    return Reply("full" if is_full else "refused", words=answer.words, error=error)


def _mend(words: str) -> str:
    mends = {
        "unknown resource": "`qconf -sc` lists the resources that -l can name",
        "parallel environment": "`qconf -spl` lists the parallel environments",
        "project": "`--account NAME`; `qconf -sprjl` lists the projects",
        "queue": "`--partition NAME`; `qconf -sql` lists the queues",
    }
    complaint = words.lower()
    known = (mend for part, mend in mends.items() if part in complaint)
    return next(known, "`--dry-run` shows what was sent")


def _shell(text: str) -> str:
    match = _SHEBANG.match(text)
    if match is None:
        return "/bin/sh"
    return f"/bin/{match[2]}" if match[1].endswith("/env") and match[2] else match[1]


def _find(mark: str, environ: Mapping[str, str]) -> list[str] | None:
    """The jobs that carry the mark, the first one first; None where nobody answers."""
    try:
        ids = {row.job_id for row in ask_queue(environ, patience=0.0) if not row.is_finished}
        marked = _marked(mark, sorted(ids), environ) if ids else []
    except SchedulerError:
        return None
    with contextlib.suppress(NoAccounting):
        marked += find_marked(mark, environ)
    return sorted(set(marked), key=int)


def _keep_first(ids: Sequence[str], environ: Mapping[str, str]) -> str:
    cancel(ids[1:], environ)
    return ids[0]


def _marked(mark: str, ids: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    what = "Grid Engine does not describe its jobs"
    answer = ask_xml(["qstat", "-j", ",".join(ids), "-xml"], environ, what, patience=0.0)
    return [
        job.findtext("JB_job_number") or ""
        for job in answer.iter("element")
        if mark in (job.findtext("JB_account") or "")
        or (job.findtext("JB_job_name") or "").endswith(mark)
    ]
