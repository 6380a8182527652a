"""Rigs that the tests of a session share, and projects on them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pytest

from tests.environments import skip_or_fail
from tests.packages import require, slurm_packages

from .config import Plan
from .rig import Rig
from .yard import Yard, open_yard


def open_rig(plan: Plan) -> Iterator[Rig]:
    if os.geteuid() != 0:
        skip_or_fail("only root can make hosts of its own (Linux namespaces)")
    require(*slurm_packages(accounting=False), "bindfs", "fuse3", "iproute2", "procps")
    with Rig(plan) as rig:
        yield rig


@pytest.fixture(scope="session")
def rig() -> Iterator[Rig]:
    """Two nodes and two login nodes, whose locks end at the host."""
    yield from open_rig(Plan(nodes=2, logins=2, locks="near"))


@pytest.fixture
def yard(rig: Rig, request: pytest.FixtureRequest) -> Iterator[Yard]:
    """A project of the test's own; afterwards none of its servers and no job is left."""
    with open_yard(rig, re.sub(r"\W+", "-", request.node.name)) as opened:
        yield opened
