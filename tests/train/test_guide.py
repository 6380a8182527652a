"""Every program of docs/training.md runs as it is written there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.train.frameworks import ROOT
from tests.train.warm import WarmPython

pytestmark = pytest.mark.frameworks

GUIDE = (ROOT / "docs" / "training.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


def test_every_program_of_the_guide_runs(
    warm: WarmPython, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after another in one process: starting torch takes longer than all of them."""
    assert len(BLOCKS) >= 5
    program = tmp_path / "guide.py"
    program.write_text(
        "blocks = " + repr(BLOCKS) + "\n"
        "for number, block in enumerate(blocks):\n"
        "    exec(compile(block, f'block {number}', 'exec'), {'__name__': '__main__'})\n"
        "print('all programs ran')\n"
    )
    monkeypatch.chdir(tmp_path)
    ended = warm.run(program)
    assert ended.returncode == 0, ended.stderr
    assert "all programs ran" in ended.stdout
    assert "better than ever: 0.9" in ended.stdout
    assert "0.9 after epoch 2" in ended.stdout
    assert "0.003 (32, 32) True" in ended.stdout
    assert "has not changed" not in ended.stderr
    assert (tmp_path / "checkpoints" / "guide" / "latest" / "model.pt").exists()
