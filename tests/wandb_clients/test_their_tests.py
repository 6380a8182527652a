"""A file of each group of W&B's own tests, where a checkout of their repository is at hand.

    git clone https://github.com/wandb/wandb && git -C wandb checkout v0.28.2
    RUNYARD_WANDB_CHECKOUT=wandb ./test tests/wandb_clients/test_their_tests.py

Their tests are in no package, so nothing can install them; all of them are run, and the score is
made, by `scripts/wandb_system_tests.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECKOUT = os.environ.get("RUNYARD_WANDB_CHECKOUT")
FILES = (
    "test_api/test_service_api.py",
    "test_artifacts/test_misc.py",
    "test_core/test_file_stream.py",
    "test_plot.py",
    "test_sandbox/test_auth.py",
    "test_sweep/test_wandb_sweep.py",
    "test_system_metrics/test_system_monitor.py",
)


@pytest.mark.live
@pytest.mark.skipif(
    not CHECKOUT, reason="RUNYARD_WANDB_CHECKOUT=FOLDER: a checkout of W&B's repository"
)
def test_a_file_of_each_group_passes() -> None:
    script = ROOT / "scripts" / "wandb_system_tests.py"
    scores = subprocess.check_output([sys.executable, script, str(CHECKOUT), *FILES], text=True)
    for file in FILES:
        assert file.removesuffix(".py").replace("/", ".") in scores
    passed, _, count = scores.splitlines()[-1].split()[1:]
    assert passed == count, scores
