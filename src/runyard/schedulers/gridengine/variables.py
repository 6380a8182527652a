"""The variables of a shell that a job of Grid Engine's may inherit."""

from __future__ import annotations

from collections.abc import Mapping

# Where the cell is: the commands inside a job need it too.
_OF_THE_CELL = (
    "SGE_ROOT", "SGE_CELL", "SGE_QMASTER_PORT", "SGE_EXECD_PORT", "SGE_CLUSTER_NAME", "SGE_ARCH",
)  # fmt: skip
# Set inside a job. `qsub -V` would hand them on, and the new job would take them for its own.
_OF_A_JOB = frozenset({
    "ARC", "ENVIRONMENT", "JOB_ID", "JOB_NAME", "JOB_SCRIPT", "NHOSTS", "NQUEUES", "NSLOTS", "PE",
    "PE_HOSTFILE", "QUEUE", "REQUEST", "RESTARTED",
})  # fmt: skip
_FOLDERS_OF_A_JOB = ("TMPDIR", "TMP")
# The key, which the agent finds by itself. Shell functions: a job's shell fails to read them.
_DROPPED = ("WANDB_API_KEY", "BASH_FUNC_")


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The shell's environment, without what belongs to another job, and without secrets."""
    is_in_job = "JOB_ID" in environ and "SGE_TASK_ID" in environ

    def is_kept(name: str) -> bool:
        if name.startswith("SGE_"):
            return name in _OF_THE_CELL
        if is_in_job and (name in _OF_A_JOB or name in _FOLDERS_OF_A_JOB):
            return False
        return not name.startswith(_DROPPED)

    return {name: value for name, value in environ.items() if is_kept(name)}
