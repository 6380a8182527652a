"""torch's and JAX's own objects in checkpoints, and their arrays by name.

Each claim is a line of the program that is run: starting torch costs more than all of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.train.frameworks import run_program
from tests.train.warm import WarmPython

pytestmark = pytest.mark.frameworks

PROGRAMS = Path(__file__).parent / "programs"


def test_states_of_torch(tmp_path: Path, warm: WarmPython) -> None:
    ended = warm.run(PROGRAMS / "torch_states.py", str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    assert "all well" in ended.stdout


def test_states_of_jax(tmp_path: Path, jax_python: Path) -> None:
    ended = run_program(jax_python, PROGRAMS / "jax_states.py", str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    assert "all well" in ended.stdout
