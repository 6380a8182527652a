"""Write docs/reference/commands.md: what every command says with --help.

.venv/bin/python scripts/command_pages.py
"""

from __future__ import annotations

from pathlib import Path

from runyard.cli.reference_page import commands_page

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "commands.md"

if __name__ == "__main__":
    PAGE.write_text(commands_page())
