"""The reference of all commands as a page: what each says with --help."""

from __future__ import annotations

import os
from unittest import mock

from runyard.cli.catalog import COMMANDS
from runyard.cli.parser import build_parser

_WIDTH = "100"
_HEAD = """\
# Commands

What `runyard COMMAND --help` says, written by `scripts/command_pages.py` from the commands.

"""


def commands_page() -> str:
    lines = [f"- [`runyard {name}`](#runyard-{name}): {says}" for name, says in COMMANDS.items()]
    parts = [_HEAD, "\n".join(lines), "\n"]
    with mock.patch.dict(os.environ, COLUMNS=_WIDTH):  # argparse asks it how wide to write.
        for name in COMMANDS:
            _, parser = build_parser(name)
            assert parser is not None
            parts.append(f"\n## runyard {name}\n\n```text\n{parser.format_help().strip()}\n```\n")
    return "".join(parts)
