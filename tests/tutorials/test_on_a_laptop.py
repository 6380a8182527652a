"""The tutorials that need no cluster."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from runyard.home import Home
from tests.tutorials.tutorial import blocks, run_tutorial

pytestmark = pytest.mark.live

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
NAMES = ["laptop-sweep", "task-files", "several-to-a-gpu", "from-wandb-cloud"]


@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial_is_true(name: str, state_folder: Home, tmp_path: Path) -> None:
    folder = tmp_path / "birds"
    folder.mkdir()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    run_tutorial(TUTORIALS / f"{name}.md", folder, {**os.environ, "PATH": path})


def test_a_page_is_read_as_it_is_written() -> None:
    page = 'Text.\n\n```python title="a.py"\nprint(1)\n```\n\n    ```bash\n    ls\n    ```\n'
    first, second = blocks(page)
    assert (first.kind, first.title, first.text, first.line) == ("python", "a.py", "print(1)\n", 3)
    assert (second.kind, second.title, second.text) == ("bash", None, "ls\n")


def test_what_a_tutorial_says_is_compared(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```bash\necho best of 3\n```\n\n```text\nbest ... 3\n```\n")
    run_tutorial(page, tmp_path, os.environ)
    page.write_text("```bash\necho best of 3\n```\n\n```text\nworst ... 3\n```\n")
    with pytest.raises(AssertionError, match=r"page\.md, line 5: 'worst \.\.\. 3' was not printed"):
        run_tutorial(page, tmp_path, os.environ)
    page.write_text("```bash\nfalse\n```\n")
    with pytest.raises(AssertionError, match=r"page\.md, line 1: exit code 1"):
        run_tutorial(page, tmp_path, os.environ)
