"""The launcher: starts the jobs of a batch as one sweep of runyard, and waits for all of them."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.singleton import Singleton
from hydra.core.utils import (
    JobReturn,
    JobStatus,
    configure_log,
    filter_overrides,
    setup_globals,
)
from hydra.errors import CompactHydraException
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict

if TYPE_CHECKING:  # Hydra imports this module in every program: runyard is loaded when it is used.
    from runyard import FunctionJob
    from runyard.errors import RunyardError
    from runyard.scripting.calls import Call

_LOGGER = logging.getLogger(__name__)
# Of a trial, which begins with its number.
_LONGEST_NAME = 80


class NotLaunched(CompactHydraException):
    """Nothing was started; Hydra prints the message without a traceback."""


class RunyardLauncher(Launcher):
    """Takes the options of `config.RunyardLauncherConf`."""

    def __init__(self, at_once: int | None = None, **options: Any) -> None:
        self._at_once = at_once
        self._options = {
            name: OmegaConf.to_container(value, resolve=True)
            if OmegaConf.is_config(value)
            else value
            for name, value in options.items()
        }
        self._context: HydraContext | None = None
        self._task_function: TaskFunction | None = None
        self._config: DictConfig | None = None

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        self._context = hydra_context
        self._task_function = task_function
        self._config = config

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        from runyard.errors import RunyardError
        from runyard.scripting.submit import submit_calls

        assert self._config is not None
        setup_globals()
        configure_log(self._config.hydra.hydra_logging, self._config.hydra.verbose)
        sweep_dir = Path(str(self._config.hydra.sweep.dir)).absolute()
        sweep_dir.mkdir(parents=True, exist_ok=True)
        numbered = list(enumerate(job_overrides, start=initial_job_idx))
        configs = [self._compose(number, overrides, sweep_dir) for number, overrides in numbered]
        try:
            calls = [
                self._call(number, overrides, config)
                for (number, overrides), config in zip(numbered, configs, strict=True)
            ]
            jobs = submit_calls(calls, self._at_once or 0, self._options)
        except RunyardError as error:
            raise NotLaunched(_describe(error)) from error
        name = jobs[0].id
        _LOGGER.info("Launched %d jobs: runyard status %s", len(jobs), name)
        _LOGGER.info("Sweep output dir: %s", sweep_dir)
        for number, overrides in numbered:
            _LOGGER.info("\t#%d : %s", number, " ".join(filter_overrides(overrides)))
        try:
            return _wait_for(jobs, configs)
        except KeyboardInterrupt:
            _LOGGER.warning("The jobs keep running. To end them: runyard cancel %s", name)
            raise

    def _compose(self, number: int, overrides: Sequence[str], sweep_dir: Path) -> DictConfig:
        """Here, not in the job: the job gets the configuration as it is now."""
        assert self._context is not None
        assert self._config is not None
        config = self._context.config_loader.load_sweep_config(self._config, list(overrides))
        with open_dict(config):
            config.hydra.job.num = number
            config.hydra.sweep.dir = str(sweep_dir)  # A job on the cluster runs in another folder.
        return config

    def _call(self, number: int, overrides: Sequence[str], config: DictConfig) -> Call:
        from hydra_plugins.runyard_launcher._trial import run_trial

        from runyard.scripting.calls import Call

        arguments = (self._context, self._task_function, config, Singleton.get_state())
        values = _values(filter_overrides(overrides))
        name = "-".join([str(number), *(f"{key}={value}" for key, value in values.items())])
        return Call(run_trial, arguments, name=name[:_LONGEST_NAME], values=values)


def _values(overrides: Sequence[str]) -> Mapping[str, Any]:
    """The overrides as the run's config shows them."""
    parsed = OverridesParser.create().parse_overrides(list(overrides))
    return {
        override.key_or_group: override.get_value_element_as_str()
        if isinstance(override.value(), list | dict)
        else override.value()
        for override in parsed
        if not override.is_delete()
    }


def _wait_for(
    jobs: Sequence[FunctionJob[JobReturn]], configs: Sequence[DictConfig]
) -> list[JobReturn]:
    """A job that fails does not end the others: Hydra's sweeper raises its error afterwards."""
    from runyard import NobodyWorks

    results: list[JobReturn] = []
    abandoned: NobodyWorks | None = None
    for job, config in zip(jobs, configs, strict=True):
        try:
            if abandoned is not None and not job.done():
                raise abandoned
            results.append(job.result())
        except NobodyWorks as error:
            abandoned = error
            results.append(_failure(config, error))
        except Exception as error:
            results.append(_failure(config, error))
    return results


def _failure(config: DictConfig, error: Exception) -> JobReturn:
    from runyard.errors import RunyardError

    if isinstance(error, RunyardError):  # Hydra prints the exception, and nothing else of it.
        error.args = (_describe(error),)
    task_config = copy.deepcopy(config)
    with open_dict(task_config):
        hydra_config = OmegaConf.create({"hydra": task_config.pop("hydra")})
    return JobReturn(
        overrides=list(config.hydra.overrides.task),
        cfg=task_config,
        hydra_cfg=hydra_config,
        working_dir=str(Path.cwd()),
        task_name=config.hydra.job.name,
        status=JobStatus.FAILED,
        # Without our own frames: its cause is the traceback of the job.
        _return_value=error.with_traceback(None),
    )


def _describe(error: RunyardError) -> str:
    return "\n".join(line for line in (error.what, error.said, error.mend) if line)
