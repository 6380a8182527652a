"""Slurm's commands."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from functools import partial

from runyard.schedulers import commands


class Answer(commands.Answer):
    title = "Slurm"
    where = "login node"
    # The controller is overloaded, restarting, or handing over to its backup.
    busy = re.compile(
        r"unable to contact slurm controller|socket timed out|connection refused|connection reset"
        r"|zero bytes were transmitted|temporarily unable|resource temporarily unavailable"
        r"|unable to establish controller machine|in standby mode|communication connection failure"
        r"|connection timed out",
        re.IGNORECASE,
    )
    silent = "Slurm's controller does not answer: wait a little, then type the same once more"
    prefix = r"^\w+: (error: )?"


ask = partial(commands.ask, Answer)


def for_reading(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a command whose answer we read: whatever the user likes to see, one form.

    Not of one that submits: a job would inherit it.
    """
    liked = ("SQUEUE_", "SINFO_", "SACCT_", "SREPORT_", "SLURM_TIME_FORMAT")
    variables = os.environ if environ is None else environ
    kept = {name: value for name, value in variables.items() if not name.startswith(liked)}
    # Lists of an array's tasks are cut after 64 characters unless that is 0.
    forms = {"SLURM_TIME_FORMAT": "standard", "SLURM_BITSTR_LEN": "0", "LC_ALL": "C.UTF-8"}
    return {**kept, **forms}


def find_slurm(environ: Mapping[str, str] | None = None) -> str:
    """Where `sbatch` is."""
    path = shutil.which("sbatch", path=(environ or os.environ).get("PATH"))
    if path is None:
        raise Answer.missing("sbatch")
    return path
