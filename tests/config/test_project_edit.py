"""Settings are written into runyard.yaml without touching the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard.config.project_edit import changed_text, write_settings
from runyard.errors import ConfigError

FILE = """\
# My experiment.
command: python train.py   # the usual

resources:
  # Two are enough.
  gpus: 1
  time: 24h    # to be sure
agents: {at_once: 4}
tracking:
"""
WANTED = {
    ("resources", "time"): "2h30m",
    ("resources", "memory"): "4G",
    ("agents", "per_gpu"): "3",
    ("tracking", "project"): "birds",
    ("gauge", "steps"): "1000",
}


def test_comments_and_order_stay() -> None:
    assert changed_text(FILE, WANTED) == (
        "# My experiment.\n"
        "command: python train.py   # the usual\n"
        "\n"
        "resources:\n"
        "  # Two are enough.\n"
        "  memory: 4G\n"
        "  gpus: 1\n"
        "  time: 2h30m    # to be sure\n"
        "agents: {per_gpu: 3, at_once: 4}\n"
        "tracking:\n"
        "  project: birds\n"
        "\n"
        "gauge:\n"
        "  steps: 1000\n"
    )


@pytest.mark.parametrize("text", ["", "# nothing yet", "a: 1", "resources: {}\n", "resources:"])
def test_files_that_have_little(text: str) -> None:
    changed = changed_text(text, {("resources", "memory"): "4G", ("resources", "cpus"): "2"})
    assert "memory: 4G" in changed
    assert changed.startswith(text.rstrip("{}\n"))


def test_what_cannot_be_changed_safely_is_left_alone(tmp_path: Path) -> None:
    shared = "usual: &usual {memory: 1G}\nresources: *usual\n"
    (tmp_path / "runyard.yaml").write_text(shared)
    with pytest.raises(ConfigError, match="cannot be changed safely"):
        write_settings(tmp_path, {("resources", "memory"): "4G", ("usual", "memory"): "1G"})
    assert (tmp_path / "runyard.yaml").read_text() == shared


def test_without_a_file_one_is_written(tmp_path: Path) -> None:
    assert write_settings(tmp_path, {("resources", "memory"): "4G"}).read_text() == (
        "resources:\n  memory: 4G\n"
    )
