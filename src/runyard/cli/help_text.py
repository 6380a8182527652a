"""What `--help` says above the options, laid out for the terminal's width.

A command's docstring has a title, then examples (indented lines: what to type, two spaces or more,
what it does), then prose. Prose is filled anew; an example that does not fit has its words below.

Options of a `help_group` are listed by `--help-GROUP` and `--help-all`; `--help` leaves out those
of a rare one.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from typing import Any

_EXAMPLE = re.compile(r"(\s+)(\S.*?)(?:\s{2,}(\S.*))?")
_NARROWEST = 24
# For textwrap.
WHOLE_WORDS: Any = {"break_long_words": False, "break_on_hyphens": False}
_ALL, _SHOWN_BY = "all", "shown_by"


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    def _fill_text(self, text: str, width: int, indent: str) -> str:
        del indent
        return lay_out(text, width)


class HelpParser(argparse.ArgumentParser):
    """argparse whose help leaves rare groups out."""

    def format_help(self, group: str | None = None) -> str:
        """Without the rare groups; or one group alone; or "all"."""
        formatter = self._get_formatter()
        if group in (None, _ALL):
            formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
            formatter.add_text(self.description)
        for section in self._action_groups:
            if group == _ALL or group in getattr(section, _SHOWN_BY, (None,)):
                formatter.start_section(section.title)
                formatter.add_text(section.description)
                formatter.add_arguments(section._group_actions)
                formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()


class _ShowGroup(argparse.Action):
    def __call__(self, parser: Any, *_: object) -> None:
        sys.stdout.write(parser.format_help(self.const))
        parser.exit()


def help_group(
    parser: argparse.ArgumentParser, name: str, title: str, *, is_rare: bool = True
) -> Any:
    """A group of options that `--help-NAME` lists."""
    group = parser.add_argument_group(title)
    setattr(group, _SHOWN_BY, (name,) if is_rare else (name, None))
    for word, text in ((_ALL, "show all options"), (name, f"show {title}")):
        if is_rare and f"--help-{word}" not in parser._option_string_actions:
            words: Any = {"action": _ShowGroup, "nargs": 0, "default": argparse.SUPPRESS}
            parser.add_argument(f"--help-{word}", const=word, help=text, **words)
    return group


def lay_out(text: str, width: int) -> str:
    width = max(width, _NARROWEST)
    return "\n\n".join(_block(block, width) for block in re.split(r"\n\s*\n", text.strip("\n")))


def _block(block: str, width: int) -> str:
    lines = block.splitlines()
    if not lines[0].startswith(" "):
        return textwrap.fill(" ".join(map(str.strip, lines)), width, **WHOLE_WORDS)
    if all(len(line) <= width for line in lines):
        return block
    return "\n".join(_example(what, does, width) for what, does in _examples(lines))


def _examples(lines: list[str]) -> list[tuple[str, str]]:
    """What to type and what it does; a line that is indented more goes on with the one before."""
    examples: list[tuple[str, str]] = []
    depth = len(lines[0]) - len(lines[0].lstrip())
    for line in lines:
        if examples and examples[-1][1] and len(line) - len(line.lstrip()) > depth + 8:
            what, does = examples.pop()
            examples.append((what, f"{does} {line.strip()}"))
            continue
        parts = _EXAMPLE.fullmatch(line)
        assert parts is not None
        examples.append((parts[1] + parts[2], parts[3] or ""))
    return examples


def _example(what: str, does: str, width: int) -> str:
    if not does:
        return what
    below = " " * (len(what) - len(what.lstrip()) + 4)
    indents: Any = {"initial_indent": below, "subsequent_indent": below}
    return "\n".join((what, *textwrap.wrap(does, width, **indents, **WHOLE_WORDS)))
