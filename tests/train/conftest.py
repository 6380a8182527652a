"""Programs that train: each in an environment in which nothing of this shell's jobs is seen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import isolate
from tests.environments import Missing, skip_or_fail
from tests.train.frameworks import ensure_framework
from tests.train.warm import WarmPython, warm_python


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolate(tmp_path, monkeypatch)
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def torch_python() -> Path:
    return _have("torch")


@pytest.fixture(scope="session")
def warm(torch_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmPython]:
    """torch, loaded once for all programs."""
    with warm_python(torch_python, tmp_path_factory.mktemp("warm")) as python:
        yield python


@pytest.fixture(scope="session")
def jax_python() -> Path:
    return _have("jax")


@pytest.fixture(scope="session")
def notebook_python() -> Path:
    return _have("notebook")


def _have(name: str) -> Path:
    try:
        return ensure_framework(name)
    except Missing as missing:
        skip_or_fail(str(missing))
