"""The guide says what can be typed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from runyard.cli.catalog import COMMANDS
from runyard.cli.parser import build_parser

PAGE = (Path(__file__).parents[2] / "docs" / "gauge.md").read_text()


def test_the_working_order_is_made_of_commands_that_exist() -> None:
    order = re.findall(r"^\d\. `runyard ([^`]+)`", PAGE, re.MULTILINE)
    first = [line.split()[0] for line in order]
    assert first == ["rehearse", "gauge", "gauge", "farm", "gauge", "farm"]
    for line in order:
        words = shlex.split(line.replace("'...'", "'python t.py'"))
        assert words[0] in COMMANDS
        parser, _ = build_parser(words[0])
        _, unknown = parser.parse_known_args(words)
        assert [word for word in unknown if word.startswith("--") and word != "--gpus"] == []
