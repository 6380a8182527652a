"""The documentation as a site: it builds, alone, and what is made from the code is up to date."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="argparse writes options another way")
def test_the_commands_page_says_what_the_commands_say() -> None:
    script = ROOT / "scripts" / "command_pages.py"
    printed = subprocess.check_output([sys.executable, script, "--print"], text=True)
    assert (ROOT / "docs" / "reference" / "commands.md").read_text() == printed, (
        "write it anew: python scripts/command_pages.py"
    )


def test_the_pages_types_are_the_servers_shapes() -> None:
    script = ROOT / "scripts" / "page_types.py"
    printed = subprocess.check_output([sys.executable, script, "--print"], text=True)
    assert (ROOT / "dashboard" / "app" / "src" / "shapes.ts").read_text() == printed, (
        "write it anew: python scripts/page_types.py"
    )


def test_the_site_builds_and_asks_nobody_else(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", tmp_path],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        check=True,
    )
    pages = sorted(tmp_path.rglob("*.html"))
    assert tmp_path / "tutorials" / "laptop-sweep.html" in pages
    for page in pages:
        loaded = re.findall(r"<(?:script|img|iframe)[^>]* src=\"(https?:[^\"]*)", page.read_text())
        loaded += re.findall(r"<link[^>]* href=\"(https?:[^\"]*)", page.read_text())
        assert not loaded, f"{page.name} asks for {loaded}"


def test_every_page_is_in_the_sites_menu() -> None:
    menu = (ROOT / "mkdocs.yml").read_text()
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert not {page for page in pages if f" {page}\n" not in menu}
