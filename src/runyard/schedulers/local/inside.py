"""What a job in the background of this machine knows of itself. The standard library alone."""

from __future__ import annotations

import os

from runyard.schedulers.inside import JobEnvironment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Set by the job's supervisor.
JOB_ID, TASK_ID = "RUNYARD_LOCAL_JOB", "RUNYARD_LOCAL_TASK"


class Job(JobEnvironment):
    def __init__(self, environ: Mapping[str, str]) -> None:
        super().__init__(environ)
        self.job_id, self.task = environ.get(JOB_ID) or None, environ.get(TASK_ID) or None
        self.own_id = self.name
        if self.is_job:
            self.node = os.uname().nodename
