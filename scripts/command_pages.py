"""Write docs/reference/commands.md: what every command says with --help.

.venv/bin/python scripts/command_pages.py
"""

from __future__ import annotations

import os
from pathlib import Path

from runyard.cli.catalog import COMMANDS
from runyard.cli.parser import build_parser

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "commands.md"
WIDTH = "100"

HEAD = """\
# Commands

What `runyard COMMAND --help` says. Written by `scripts/command_pages.py` from the commands themselves.

"""


def commands_page() -> str:
    os.environ["COLUMNS"] = WIDTH
    lines = [f"- [`runyard {name}`](#runyard-{name}): {says}" for name, says in COMMANDS.items()]
    parts = [HEAD, "\n".join(lines), "\n"]
    for name in COMMANDS:
        _, parser = build_parser(name)
        assert parser is not None
        parts.append(f"\n## runyard {name}\n\n```text\n{parser.format_help().strip()}\n```\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(commands_page())
