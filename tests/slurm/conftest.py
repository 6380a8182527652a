"""A project of a module's own on the cluster that all share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.slurm.cluster import SlurmCluster
from tests.slurm.yard import Yard, open_yard


@pytest.fixture(scope="module")
def module_yard(
    tmp_path_factory: pytest.TempPathFactory,
    module_environment: pytest.MonkeyPatch,
    slurm_cluster: SlurmCluster,
) -> Iterator[Yard]:
    """For all tests of a module."""
    folder = tmp_path_factory.mktemp("yard")
    with open_yard(folder, module_environment, slurm_cluster) as opened:
        yield opened


@pytest.fixture(scope="module")
def quoted_yard(
    tmp_path_factory: pytest.TempPathFactory,
    module_environment: pytest.MonkeyPatch,
    slurm_cluster: SlurmCluster,
) -> Iterator[Yard]:
    """The same in a folder whose name wants quoting, and which Slurm cannot write to by itself."""
    folder = tmp_path_factory.mktemp("yard") / "it's a place"
    with open_yard(folder, module_environment, slurm_cluster) as opened:
        yield opened
