"""Programs that train: each in an environment in which nothing of this shell's jobs is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import isolate
from tests.environments import Missing, skip_or_fail
from tests.train.frameworks import ensure_framework


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolate(tmp_path, monkeypatch)
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def torch_python() -> Path:
    return _have("torch")


@pytest.fixture(scope="session")
def jax_python() -> Path:
    return _have("jax")


def _have(name: str) -> Path:
    try:
        return ensure_framework(name)
    except Missing as missing:
        skip_or_fail(str(missing))
