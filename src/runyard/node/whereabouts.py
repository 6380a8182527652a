"""Which Slurm job this process is in, and on which of its nodes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def whereabouts(environ: Mapping[str, str]) -> dict[str, str]:
    """`job` as Slurm writes it (123, or 123_4 in an array) and `node`; empty outside of a job."""
    array, task = environ.get("SLURM_ARRAY_JOB_ID"), environ.get("SLURM_ARRAY_TASK_ID")
    job = f"{array}_{task}" if array and task else environ.get("SLURM_JOB_ID")
    if not job:
        return {}
    # Slurm's own name: several nodes may share a host, and a host may have several names.
    node = environ.get("SLURMD_NODENAME")
    return {"job": job, "node": node} if node else {"job": job}
