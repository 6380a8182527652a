"""What Hydra asks of every launcher: its own suites, which it ships for plugins.

Needs hydra-core, whose pytest plugin has the fixtures. `tests/hydra` of runyard runs this file in
an environment of its own.
"""

from __future__ import annotations

from typing import Any

import pytest
from hydra.core.plugins import Plugins
from hydra.plugins.launcher import Launcher
from hydra.test_utils.launcher_common_tests import (
    BatchedSweeperTestSuite,
    IntegrationTestSuite,
    LauncherTestSuite,
)
from hydra.test_utils.test_utils import TSweepRunner
from hydra_plugins.runyard_launcher.launcher import RunyardLauncher

HERE = ["hydra.launcher.on=here"]


def test_hydra_discovers_it() -> None:
    names = [launcher.__name__ for launcher in Plugins.instance().discover(Launcher)]
    assert RunyardLauncher.__name__ in names


@pytest.mark.parametrize(("launcher_name", "overrides"), [("runyard", HERE)])
class TestLauncher(LauncherTestSuite):
    pass


@pytest.mark.parametrize(
    ("launcher_name", "overrides"), [("runyard", [*HERE, "hydra.sweeper.max_batch_size=2"])]
)
class TestBatches(BatchedSweeperTestSuite):
    pass


@pytest.mark.parametrize(
    ("task_launcher_cfg", "extra_flags"),
    [
        (
            {},
            [
                "-m",
                "hydra/hydra_logging=disabled",
                "hydra/job_logging=disabled",
                "hydra/launcher=runyard",
                *HERE,
            ],
        )
    ],
)
class TestIntegration(IntegrationTestSuite):
    pass


def test_jobs_that_fail_come_back_as_failures(
    hydra_sweep_runner: TSweepRunner, tmpdir: Any
) -> None:
    def divide(config: Any) -> float:
        return float(1 / config.x)

    sweep = hydra_sweep_runner(
        calling_file=None,
        calling_module="hydra.test_utils.a_module",
        task_function=divide,
        config_path="configs",
        config_name="compose.yaml",
        overrides=["hydra/launcher=runyard", *HERE, "+x=0,2"],
        temp_dir=tmpdir,
    )
    with pytest.raises(ZeroDivisionError, match="division by zero"), sweep:
        pass
