"""Jobs that are in Slurm's hands: asked for, many at once; cancelled. `submitting` sends them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from runyard.schedulers.jobs import JobState, Tasks, read_ranges
from runyard.schedulers.protocol import PATIENCE
from runyard.schedulers.slurm.commands import Answer, ask, for_reading
from runyard.schedulers.slurm.states import read_state
from runyard.schedulers.slurm.values import read_time

_FIELDS = "%F|%K|%T|%S|%e|%N|%r"
AT_A_TIME = 500


def poll(
    ids: Iterable[str],
    environ: Mapping[str, str] | None = None,
    *,
    patience: float = PATIENCE,
    seconds: float = PATIENCE,
) -> dict[str, JobState]:
    """The state of these jobs, by one question to Slurm for all of them.

    `patience`: how long a controller that does not answer is asked again; `seconds`: how long one
    question may take.
    """
    wanted = list(dict.fromkeys(ids))
    if not wanted:
        return {}
    # All of one's own instead of a list of ids: a single id that Slurm has forgotten would make
    # the whole answer an error, and the list may be longer than a command line.
    words = ["squeue", "--me", "--noheader", "--states=all", f"--format={_FIELDS}"]
    answer = ask(words, environ=for_reading(environ), patience=patience, seconds=seconds)
    if not answer.is_good:
        raise answer.refused("Slurm does not tell how the jobs stand")
    return read_states(wanted, answer.output)


def read_states(wanted: Sequence[str], text: str) -> dict[str, JobState]:
    """What squeue printed, by job; a line that makes no sense is passed over."""
    tasks_of: dict[str, list[Tasks]] = {job_id: [] for job_id in wanted}
    for line in text.splitlines():
        parts = line.split("|", 6)
        if len(parts) == 7 and parts[0] in tasks_of:
            tasks_of[parts[0]].append(_read_tasks(*parts))
    return {job_id: JobState(job_id, tuple(tasks)) for job_id, tasks in tasks_of.items()}


def cancel(
    ids: Iterable[str],
    *,
    only_waiting: bool = False,
    environ: Mapping[str, str] | None = None,
) -> None:
    """Cancel jobs, or tasks of arrays (123_4); those that have ended already are no error."""
    wanted = list(dict.fromkeys(ids))
    for begin in range(0, len(wanted), AT_A_TIME):
        states = ["--state=PENDING"] if only_waiting else []
        some = wanted[begin : begin + AT_A_TIME]
        answer = ask(["scancel", *states, *some], environ=environ)
        if not answer.is_good and not _is_gone(answer):
            raise answer.refused(f"Slurm does not cancel {', '.join(some[:5])}")


def change(command: str, ids: Iterable[str], environ: Mapping[str, str] | None = None) -> None:
    """`hold` or `release` jobs; those that have ended already are no error."""
    for job_id in dict.fromkeys(ids):
        answer = ask(["scontrol", command, job_id], environ=environ)
        if not answer.is_good and not _is_gone(answer):
            raise answer.refused(f"Slurm does not {command} {job_id}")


def count_tasks(spec: str) -> int:
    """How many tasks an array's words stand for."""
    return max(1, sum(map(len, read_ranges(spec))))


def _read_tasks(
    job: str, array: str, state: str, start: str, end: str, nodes: str, reason: str
) -> Tasks:
    is_array = array not in ("", "N/A")
    is_range = is_array and not array.isdecimal()
    which = job if not is_array else f"{job}_[{array}]" if is_range else f"{job}_{array}"
    return Tasks(
        which=which,
        count=count_tasks(array) if is_range else 1,
        state=read_state(state),
        reason=_told(reason),
        start=read_time(start),
        end=read_time(end),
        nodes=_told(nodes),
    )


def _told(text: str) -> str | None:
    bare = text.strip()
    return None if bare in ("", "None", "N/A", "(null)", "Unknown") else bare


def _is_gone(answer: Answer) -> bool:
    return "invalid job id" in answer.complaint.lower()
