"""docs/wandb-compatibility.md: results in it stand between marks and are written by programs."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "wandb-compatibility.md"


def put_section(name: str, text: str) -> None:
    """Write what stands between the marks of a section anew."""
    page = PAGE.read_text()
    begin, end = _marks(name)
    before, _, rest = page.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"{PAGE.name} has no section {name!r}")
    PAGE.write_text(f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}")


def read_section(name: str) -> str:
    begin, end = (re.escape(mark) for mark in _marks(name))
    found = re.search(f"{begin}(.*?){end}", PAGE.read_text(), re.DOTALL)
    if found is None:
        raise ValueError(f"{PAGE.name} has no section {name!r}")
    return found[1].strip()


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}: written by a program -->", f"<!-- end of {name} -->"
