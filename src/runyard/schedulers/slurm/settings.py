"""Slurm's words in runyard.yaml and in profiles: options, variables, accounting.

The one module of this package that `config` and `clusters` read; it imports no room.
"""

from __future__ import annotations

from dataclasses import dataclass

from runyard.reading.kinds import Text, Word
from runyard.reading.records import setting

# What `resources: extra` and a profile's `submission: always` hold.
EXTRA_OPTIONS = "any other option of sbatch, as sbatch takes it"
EXTRA_FLAG = "--sbatch"
ALWAYS_OPTIONS = "options of sbatch that every job gets"
CLUSTER_NAMES = "what Slurm calls the cluster (scontrol show config)"
# The folder of a job on its node's own disk, where the site makes one.
LOCAL_FOLDER = "${SLURM_TMPDIR}"
# Long options, for what runyard.yaml calls otherwise.
_SETTINGS = {
    "mem": "memory", "mem-per-gpu": "memory", "mem-per-cpu": "memory", "gres": "gpus",
    "gpus": "gpus", "gpus-per-node": "gpus", "gpus-per-task": "gpus", "cpus-per-task": "cpus",
    "mail-type": "mail", "mail-user": "mail_to", "ntasks-per-node": "tasks_per_node",
}  # fmt: skip
# The files that a job's output goes to; o and e are short forms.
LOG_FILES = ("output", "error", "o", "e")
# How a profile's forms of asking for GPUs and memory are written; {} is the number, with its type.
GPU_OPTIONS = {
    "gpus_per_node": "--gpus-per-node={}",
    "gpus_per_task": "--gpus-per-task={}",
    "gres": "--gres=gpu:{}",
}
MEMORY_OPTIONS = {"per_node": "--mem", "per_cpu": "--mem-per-cpu", "per_gpu": "--mem-per-gpu"}


def setting_name(word: str) -> str:
    """What an option is called in a profile: `--mem=4G` is `memory`."""
    name = word.partition("=")[0].split()[0].lstrip("-")
    return _SETTINGS.get(name, name)


@dataclass(frozen=True)
class Accounting:
    """Where figures of ended jobs come from."""

    sacct: str = setting(
        Word("yes", "no", "unknown"), "whether there is an accounting database", "unknown",
        probe="accounting",
    )  # fmt: skip
    usage_command: str | None = setting(Text("COMMAND"), "the command that shows the hours used")
    efficiency_command: str | None = setting(
        Text("COMMAND"),
        "the command that shows a job's efficiency; the job's number is appended",
        "seff",
    )

    @property
    def database(self) -> str:
        """In a word or two, for a page about the cluster; empty where nobody knows."""
        return {"yes": "`sacct`", "no": "none", "unknown": ""}[self.sacct]
