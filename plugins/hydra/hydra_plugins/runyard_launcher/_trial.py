"""One job of a multirun, in the process of its trial. Hydra does not scan modules with `_`."""

from __future__ import annotations

import os
from typing import Any

from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus, run_job, setup_globals
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict


def run_trial(
    context: HydraContext, task_function: TaskFunction, config: DictConfig, singletons: Any
) -> JobReturn:
    """Raise what the task function raises: runyard then knows that the trial failed."""
    Singleton.set_state(singletons)
    setup_globals()
    with open_dict(config):
        # The run's id, not the scheduler's: it is the same in each attempt, and so is a folder
        # that is named after it.
        config.hydra.job.id = os.environ["WANDB_RUN_ID"]
    result = run_job(
        hydra_context=context,
        task_function=task_function,
        config=config,
        job_dir_key="hydra.sweep.dir",
        job_subdir_key="hydra.sweep.subdir",
    )
    if result.status is JobStatus.FAILED:
        raise result._return_value
    return result
