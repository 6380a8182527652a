"""Where a client version comes from, and what is said where it cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wandb_clients import environments
from tests.wandb_clients.environments import MissingClient, ensure_environment


@pytest.fixture
def no_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout without any environment, and a pip that finds nothing."""
    monkeypatch.setattr(environments, "FOLDER", tmp_path / "wandb-clients")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    return tmp_path / "wandb-clients"


def test_a_version_that_cannot_be_had_is_told_in_one_line(no_packages: Path) -> None:
    with pytest.raises(MissingClient) as told:
        ensure_environment("0.1.2")
    assert "\n" not in str(told.value)
    assert "wandb==0.1.2" in str(told.value)


def test_half_an_installation_is_not_taken_for_a_whole_one(no_packages: Path) -> None:
    python = no_packages / "0.1.2" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    with pytest.raises(MissingClient):
        ensure_environment("0.1.2")


def test_what_is_installed_is_used_again(
    no_packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "_install", lambda *_: None)
    python = ensure_environment("0.1.2")
    mark = python.parent / "mark"
    mark.touch()
    assert ensure_environment("0.1.2") == python
    assert mark.exists()
    (python.parents[1] / "installed").unlink()  # Killed before it was through.
    assert ensure_environment("0.1.2") == python
    assert not mark.exists()
