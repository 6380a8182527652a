"""Why Slurm takes no job: a limit on how many there are, or something that the job asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping

from runyard.reading.units import read_whole
from runyard.schedulers.errors import SchedulerError, SchedulerSilent
from runyard.schedulers.slurm.commands import Answer, ask

# Slurm's words for "there are enough jobs in the queue": yours, your account's, a QOS's, or all.
# The general ones stand for limits of size and time as well; a line before them says which, where
# the release is not too old for it.
_LIMIT = re.compile(
    r"(Max|Grp)SubmitJob|maximum number of jobs|too many jobs|MaxJobCount", re.IGNORECASE
)
# Slurm's commands are here, and nothing says where a controller is.
_NO_CONTROLLER = re.compile(
    r"resolve_ctls_from_dns_srv|could not establish a configuration source", re.IGNORECASE
)
_ANY_LIMIT, _NAMED_LIMIT = "job submit limit", re.compile(r"error: (QOS|Assoc)\w+")


def ask_array_size(environ: Mapping[str, str]) -> int | None:
    """MaxArraySize, as the cluster has it; None where it does not say."""
    answer = ask(["scontrol", "show", "config"], environ=environ, patience=5)
    match = re.search(r"^MaxArraySize\s*=\s*(\d+)", answer.output, re.MULTILINE)
    return read_whole(match[1]) if match else None


def is_limit(complaint: str) -> bool:
    """Whether Slurm says that there are too many jobs, and not that this one is wrong."""
    if _LIMIT.search(complaint) is not None:
        return True
    return _ANY_LIMIT in complaint and _NAMED_LIMIT.search(complaint) is None


def refusal(answer: Answer, name: str) -> SchedulerError:
    """The error for a job that was not taken, with what helps against Slurm's own words."""
    if answer.is_busy:
        return SchedulerSilent(
            f"Slurm does not say whether it took the job {name}",
            said=answer.words,
            mend="wait until `squeue --me` answers; type the same if the job is not there",
        )
    if _NO_CONTROLLER.search(answer.complaint) is not None:
        return answer.refused(
            f"Slurm has no controller for this machine, so it cannot take the job {name}; nothing "
            "was submitted",
            "type it on a login node of the cluster; `runyard doctor` shows what is here",
        )
    mends = {
        "invalid account": "`--account NAME`; `sacctmgr show user $USER -s` lists yours",
        "invalid partition": "`--partition NAME`; `sinfo -s` lists them",
        "invalid qos": "`--qos NAME`; `sacctmgr show qos` lists them",
        "time limit": "ask for less with --time; `sinfo -o '%P %l'` shows what partitions allow",
        "node configuration is not available": "no node has so much: ask for fewer GPUs or CPUs or "
        "less memory; `sinfo -N -o '%N %c %m %G'` shows what nodes have",
        "invalid generic resource": "`sinfo -o %G` shows the names of the GPUs",
        "invalid feature": "`sinfo -o %f` shows the features that --constraint can name",
        "invalid job array": "the array is too large for this cluster: limits.array_size in its "
        "profile is to be MaxArraySize (`scontrol show config`)",
    }
    complaint = answer.complaint.lower()
    mend = next((mend for words, mend in mends.items() if words in complaint), None)
    return answer.refused(
        f"Slurm does not take the job {name}; nothing was submitted",
        mend or "`--dry-run` shows what was sent",
    )
