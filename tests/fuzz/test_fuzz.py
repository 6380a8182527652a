"""Every target with the corpus and so many new inputs, the same ones each time.

`RUNYARD_FUZZ_SECONDS=600` tries new ones for so long on each target; `scripts/fuzz.py` also keeps
what it learns.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Iterator

import pytest

from tests.fuzz.engine import Target, explore, replay
from tests.fuzz.targets import TARGETS

_SECONDS = float(os.environ.get("RUNYARD_FUZZ_SECONDS") or 0)
# About two seconds each.
_EXECUTIONS = {"graphql": 100, "routes": 100, "file_stream": 100, "uploads": 60, "manifests": 40,
               "slurm_output": 40}  # fmt: skip


@pytest.fixture(params=sorted(TARGETS))
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    # Inputs make warnings by the hundred; errors are looked at.
    logging.disable(logging.WARNING)
    target = TARGETS[request.param]()
    yield target
    logging.disable(logging.NOTSET)
    target.close()


def test_no_input_is_an_error_or_costs_too_much(target: Target) -> None:
    figures = replay(target)
    if _SECONDS:
        explore(target, beginning=secrets.randbits(32), seconds=_SECONDS, figures=figures)
    else:
        count = _EXECUTIONS.get(target.name, 100)
        explore(target, beginning=1, executions=count, figures=figures)
    print(f"{target.name}: {figures}")
    found = {kind: (figures.details[kind], case) for kind, case in figures.findings.items()}
    assert not found, found
