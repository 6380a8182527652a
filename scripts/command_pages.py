"""Write docs/reference/commands.md: all options of every command.

.venv/bin/python scripts/command_pages.py           writes the page
.venv/bin/python scripts/command_pages.py --print   prints it
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from unittest import mock

from runyard.cli.catalog import COMMANDS, FORMER, GROUPS, SUBCOMMANDS
from runyard.cli.letters import LETTERS
from runyard.cli.overview import EXIT_CODES
from runyard.cli.parser import build_parser

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "commands.md"
_WIDTH = "100"
_HEAD = """\
# Commands

All options of each command, as `runyard COMMAND --help-all` lists them; `--help` leaves rare ones
out. Written by `scripts/command_pages.py` from the commands.

"""
_LETTERS = """\

## Letters

One letter means one thing, behind every command that has it.

| letter | meaning | option |
| --- | --- | --- |
"""
_FORMER = """\

## Former names

They do not run any more, and answer with the new name.

| was | is |
| --- | --- |
"""
_CODES = """\

## Exit codes

| code | |
| --- | --- |
"""


def commands_page() -> str:
    parts = [_HEAD]
    for title, commands in GROUPS.items():
        lines = [
            f"- [`runyard {name}`](#runyard-{name}): {text}" for name, text in commands.items()
        ]
        parts.append("\n".join((f"**{title.capitalize()}**\n", *lines, "\n")))
    for command in COMMANDS:
        for name in (command, *(two for two in SUBCOMMANDS if two.startswith(f"{command} "))):
            parts.append(f"\n## runyard {name}\n\n```text\n{_help(name).strip()}\n```\n")
    rows = [f"| {code} | {meaning} |\n" for code, meaning in EXIT_CODES.items()]
    letters = [
        f"| `{letter}` | {meaning} | {', '.join(f'`{option}`' for option in options)} |\n"
        for letter, (meaning, options) in LETTERS.items()
    ]
    former = [f"| `runyard {old}` | `runyard {now}` |\n" for old, now in FORMER.items()]
    return "".join((*parts, _LETTERS, *letters, _FORMER, *former, _CODES, *rows))


def _help(name: str) -> str:
    # argparse asks the environment how wide to write; and options that make a command slow to start
    # are there only where its words may need them.
    with (
        mock.patch.dict(os.environ, COLUMNS=_WIDTH),
        mock.patch.object(sys, "argv", ["runyard", name, "--help"]),
    ):
        _, parser = build_parser(name)
        assert parser is not None
        return parser.format_help("all")


if __name__ == "__main__":
    if "--print" in sys.argv:
        sys.stdout.write(commands_page())
    else:
        PAGE.write_text(commands_page())
