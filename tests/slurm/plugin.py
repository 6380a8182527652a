"""Fixtures with a real Slurm behind them."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from typing import NoReturn

import pytest

from .cluster import ClusterSpec, SlurmCluster
from .packages import MissingPackagesError, ensure_packages

MakeCluster = Callable[[ClusterSpec], SlurmCluster]


def require_slurm(*, accounting: bool) -> None:
    """Go on where Slurm is or can be installed; skip the test elsewhere, or fail it in CI."""
    reason = _why_missing(accounting)
    if reason:
        skip_or_fail(reason)


def skip_or_fail(reason: str) -> NoReturn:
    """A developer's machine may lack Slurm; a CI machine without it would test nothing unseen."""
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@functools.cache  # A failed installation is not tried again for each test.
def _why_missing(accounting: bool) -> str | None:
    try:
        ensure_packages(accounting=accounting)
    except MissingPackagesError as missing:
        return str(missing)
    return None


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
