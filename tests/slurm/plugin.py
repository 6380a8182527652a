"""Fixtures with a real Slurm behind them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from tests.packages import require, slurm_packages

from .cluster import ClusterSpec, SlurmCluster

MakeCluster = Callable[[ClusterSpec], SlurmCluster]


def require_slurm(*, accounting: bool) -> None:
    """Go on where Slurm is or can be installed; skip the test elsewhere, or fail it in CI."""
    require(*slurm_packages(accounting=accounting))


@pytest.fixture(scope="session")
def slurm_cluster() -> Iterator[SlurmCluster]:
    """The session's cluster, with accounting; started when the first test asks for it."""
    require_slurm(accounting=True)
    with SlurmCluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def bare_slurm_cluster() -> Iterator[SlurmCluster]:
    """The session's cluster without accounting; started when the first test asks for it."""
    require_slurm(accounting=False)
    with SlurmCluster(ClusterSpec(accounting=False)) as cluster:
        yield cluster


@pytest.fixture
def make_slurm_cluster() -> Iterator[MakeCluster]:
    """Start clusters for one test only; they are gone after it."""
    with contextlib.ExitStack() as running:

        def make(spec: ClusterSpec) -> SlurmCluster:
            require_slurm(accounting=spec.accounting)
            return running.enter_context(SlurmCluster(spec))

        yield make
