"""Sending a plan to Slurm: the folder first, then one job or several, as many as Slurm takes now.

What a submit limit keeps out is *held*: written down in the job folder, and sent by a later command
or by one of the jobs at its end (`topping.py`). Trials are bound to agents late, so what has been
taken already works on all of them.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.errors import StateError
from runyard.home import write_whole
from runyard.launch.commands import Answer, SlurmError, ask, refused
from runyard.launch.script import Part, arguments, is_plain, script

if TYPE_CHECKING:
    from runyard.launch.plan import Plan

HELD = "held.json"
# Slurm's words for "you have enough jobs in the queue"; the reasons come on lines of their own.
_LIMIT = re.compile(
    r"MaxSubmit|job submit limit|maximum number of jobs|too many jobs|MaxJobCount", re.IGNORECASE
)
# Of the shell's own settings for sbatch, those that may stand where nobody says anything else: an
# account in ~/.bashrc is what some sites advise. The others would overrule the script unseen.
_WELCOME = ("ACCOUNT", "PARTITION", "QOS", "CONSTRAINT", "RESERVATION", "CLUSTERS")
_OF_SLURM = ("SLURM_CONF", "SLURM_CLUSTERS", "SLURM_TIME_FORMAT")


@dataclass(frozen=True)
class SubmittedJob:
    """One job that Slurm has taken; `array` in Slurm's words."""

    job_id: str
    tasks: int
    array: str | None
    offset: int = 0


@dataclass(frozen=True)
class Submitted:
    """What became of a plan. `held`: agents that a limit kept out, and Slurm's words for it."""

    jobs: tuple[SubmittedJob, ...]
    held: int = 0
    why_held: str | None = None


def parts_of(plan: Plan, array_size: int) -> list[Part]:
    """The jobs that a plan becomes."""
    if plan.form == "nodes":
        return [Part(plan.agents)]
    if plan.form == "jobs":
        return [Part(1, offset) for offset in range(plan.agents)]
    # Slurm caps the index, not the count, and ours begin at 1.
    most = max(1, array_size - 1)
    return [
        Part(min(most, plan.agents - offset), offset) for offset in range(0, plan.agents, most)
    ]


def submit(
    plan: Plan,
    *,
    environ: Mapping[str, str],
    array_size: int | None = None,
    notice: Callable[[str], None] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Submitted:
    """Make the job folder and send the plan; SlurmError where nothing of it was taken."""
    write_folder(plan)
    parts = parts_of(plan, array_size or plan.profile.limits.array_size)
    sender = Sender(plan, environ, notice, sleep)
    done = sender.send(parts)
    if done.held:
        hold(plan.places.job, sender.left, done.why_held or "")
    return done


class Sender:
    """Sends parts one after another, and remembers what was taken."""

    def __init__(
        self,
        plan: Plan,
        environ: Mapping[str, str],
        notice: Callable[[str], None] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._plan = plan
        self._environ = clean_environment(environ, plan)
        self._notice = notice
        self._sleep = sleep
        self._jobs: list[SubmittedJob] = []
        self.left: list[Part] = []

    def send(self, parts: list[Part]) -> Submitted:
        why = None
        for place, part in enumerate(parts):
            if place and self._plan.profile.limits.pause:
                self._sleep(self._plan.profile.limits.pause)
            answer = self._send(part)
            if answer is None:
                continue
            if _LIMIT.search(answer.complained) is None or not (self._jobs or part.count > 1):
                if self._jobs:
                    why, self.left = answer.words, parts[place:]
                    break
                raise _refusal(answer, self._plan)
            why = answer.words
            self.left = [*self._send_some(part), *parts[place + 1 :]]
            break
        if not self._jobs:
            raise SlurmError(
                "Slurm takes no more jobs of yours now",
                said=why,
                mend="wait until some of them have ended (`squeue --me`), then type it again",
            )
        return Submitted(tuple(self._jobs), sum(one.count for one in self.left), why)

    def _send_some(self, part: Part) -> list[Part]:
        """As much of an array as a limit lets in; the rest. Halving finds it in a few questions."""
        offset, left, size = part.offset, part.count, part.count // 2
        while size and left:
            some = Part(min(size, left), offset)
            if self._send(some) is None:
                offset, left = offset + some.count, left - some.count
            size //= 2
        return [Part(left, offset)] if left else []

    def _send(self, part: Part) -> Answer | None:
        """None where Slurm took it, else its answer."""
        plan = self._plan
        answer = ask(
            ["sbatch", "--parsable", *arguments(plan)],
            stdin=script(plan, part),
            environ=self._environ,
            before_again=self._find_taken,
            notice=self._notice,
            sleep=self._sleep,
        )
        if not answer.is_good:
            return answer
        job_id = answer.said.strip().splitlines()[-1].partition(";")[0] if answer.said.strip() else ""
        if not job_id.isdecimal():
            return Answer(1, "", f"sbatch: error: it answered {answer.said.strip()!r}")
        array = f"1-{part.count}" if plan.form == "array" else None
        tasks = plan.agents if plan.form == "nodes" else part.count
        self._jobs.append(SubmittedJob(job_id, tasks, array, part.offset))
        return None

    def _find_taken(self) -> Answer | None:
        """Whether a submission whose answer got lost was taken all the same."""
        if not is_plain(self._plan.places.job):
            return None
        words = ["squeue", "--me", "--noheader", "--states=all", "--format=%F|%Z"]
        found = ask(words, environ=self._environ, sleep=self._sleep)
        known = {one.job_id for one in self._jobs}
        for line in found.said.splitlines():
            job_id, _, folder = line.partition("|")
            if folder.strip() == str(self._plan.places.job) and job_id not in known:
                return Answer(0, job_id, "")
        return None


def write_folder(plan: Plan) -> None:
    """The submission's own folder, and that of its logs: without it Slurm would fail the job and
    leave no word."""
    folder = plan.places.job
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        plan.logs.mkdir(parents=True, exist_ok=True)
        write_whole(folder / "job.json", json.dumps(plan.job, indent=1) + "\n")
        write_whole(folder / "script.sh", script(plan))
    except OSError as error:
        raise StateError(
            f"the job's folder {folder} cannot be written",
            said=error.strerror,
            mend="it must be on storage that login and compute nodes share, with room left",
        ) from error


def clean_environment(environ: Mapping[str, str], plan: Plan) -> dict[str, str]:
    """The shell's environment, without what would overrule the script, what belongs to another job,
    and the key, which the agent finds by itself: Slurm keeps a copy of all the rest."""
    said = {name.replace("-", "_").upper() for name, _ in plan.header.options}
    kept = {}
    for name, value in environ.items():
        if name.startswith("SBATCH_"):
            option = name.removeprefix("SBATCH_")
            if option not in _WELCOME or option in said:
                continue
        elif name.startswith("SLURM") and name not in _OF_SLURM:
            continue
        elif name == "WANDB_API_KEY":
            continue
        kept[name] = value
    return kept


def hold(folder: Path, left: list[Part], why: str) -> None:
    content = {"why": why, "parts": [{"count": one.count, "offset": one.offset} for one in left]}
    write_whole(folder / HELD, json.dumps(content) + "\n")


def ask_array_size(environ: Mapping[str, str]) -> int | None:
    """MaxArraySize, as the cluster has it; None where it does not say."""
    answer = ask(["scontrol", "show", "config"], environ=environ, patience=5)
    found = re.search(r"^MaxArraySize\s*=\s*(\d+)", answer.said, re.MULTILINE)
    return int(found[1]) if found else None


def with_sweep(plan: Plan, sweep: int) -> Plan:
    """The same plan for a sweep that exists by now."""
    return replace(plan, job={**plan.job, "sweep": sweep})


def _refusal(answer: Answer, plan: Plan) -> SlurmError:
    mends = {
        "invalid account": "`--account NAME`; `sacctmgr show user $USER -s` lists yours",
        "invalid partition": "`--partition NAME`; `sinfo -s` lists them",
        "invalid qos": "`--qos NAME`; `sacctmgr show qos` lists them",
        "time limit": "ask for less with --time; `sinfo -o '%P %l'` shows what partitions allow",
        "node configuration is not available": "no node has so much: ask for fewer GPUs or CPUs or "
        "less memory; `sinfo -N -o '%N %c %m %G'` shows what nodes have",
        "invalid generic resource": "`sinfo -o %G` shows the names of the GPUs",
        "invalid feature": "`sinfo -o %f` shows the features that --constraint can name",
        "invalid job array": "the array is too large for this cluster: set limits.array_size in its "
        "profile to MaxArraySize (`scontrol show config`)",
    }
    said = answer.complained.lower()
    mend = next((mend for words, mend in mends.items() if words in said), None)
    return refused(
        f"Slurm does not take the job {plan.name}; nothing was submitted",
        answer,
        mend or "`--dry-run` shows what was sent",
    )
