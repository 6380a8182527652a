"""An allocation for a person: made by `salloc`, entered by `srun --pty`, given back by `scancel`.

The allocation is Slurm's, not the terminal's: when the connection drops it stays until its time is
up, and can be entered again.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence

from runyard.schedulers.errors import SchedulerError
from runyard.schedulers.jobs import Header
from runyard.schedulers.slurm.commands import Answer, ask, for_reading
from runyard.schedulers.slurm.header import option_words
from runyard.schedulers.slurm.variables import clean_environment

# Of a batch job's options, those that salloc does not know or that make no sense for a person.
_BATCH_ONLY = ("signal", "open-mode", "requeue", "no-requeue", "output", "error", "array", "chdir")
_GRANTED = re.compile(r"Granted job allocation (\d+)")


def allocation_words(header: Header) -> list[str]:
    """The command that makes the allocation, and returns when it is there."""
    known = tuple(option for option in header.options if option[0] not in _BATCH_ONLY)
    options = option_words(Header(known))
    return ["salloc", "--no-shell", *options]


def entry_words(
    job: str, words: Sequence[str], cpus: int | None = None, *, on_terminal: bool = True
) -> list[str]:
    """The command that runs something in it: a step beside what runs there."""
    # Since 22.05 srun does not take the CPUs over from the job.
    each = [f"--cpus-per-task={cpus}"] if cpus else []
    step = ["--overlap", "--nodes=1", "--ntasks=1", *(["--pty"] if on_terminal else [])]
    return ["srun", f"--jobid={job}", *step, *each, "--", *words]


def allocate(header: Header, environ: Mapping[str, str]) -> str:
    """Wait for the allocation, passing on what Slurm says meanwhile; the job's number."""
    said: list[str] = []
    try:
        with subprocess.Popen(
            allocation_words(header),
            env=clean_environment(environ, [name for name, _ in header.options]),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as process:
            assert process.stderr is not None
            for line in process.stderr:
                said.append(line)
                sys.stderr.write(line)
                sys.stderr.flush()
    except OSError as error:
        raise SchedulerError("salloc cannot be run", said=error.strerror) from error
    match = _GRANTED.search("".join(said))
    if process.returncode or match is None:
        answer = Answer(process.returncode or 1, "", "".join(said))
        raise answer.refused("Slurm gives no allocation", "`--dry-run` shows what was asked")
    return match[1]


def raw_number(job: str, task: str | None, environ: Mapping[str, str]) -> str:
    """srun knows a task of an array by a number of its own."""
    if task is None:
        return job
    words = ["squeue", "--noheader", "--format=%A", "--jobs", f"{job}_{task}"]
    answer = ask(words, environ=for_reading(environ), patience=0.0, seconds=10.0)
    number = answer.output.strip()
    if not answer.is_good or not number.isdecimal():
        raise answer.refused(f"task {job}_{task} does not run", f"`runyard status {job}`")
    return number
