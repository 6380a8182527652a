"""What a job of this machine is told about itself."""

JOB_ID, TASK_ID = "RUNYARD_LOCAL_JOB", "RUNYARD_LOCAL_TASK"
