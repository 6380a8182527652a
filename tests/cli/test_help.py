"""`--help` of every command: what to type comes first, every option is explained, and it fits."""

from __future__ import annotations

import argparse
import re
import sys

import pytest

from runyard.cli.catalog import COMMANDS, SUBCOMMANDS
from runyard.cli.help_text import lay_out
from runyard.cli.main import main
from runyard.cli.overview import overview
from runyard.cli.parser import Parser, build_parser


def parser_of(command: str, monkeypatch: pytest.MonkeyPatch) -> Parser:
    # Options that make a command slow to start are there only where its words may need them.
    monkeypatch.setattr(sys, "argv", ["runyard", *command.split(), "--help"])
    parser = build_parser(command)[1]
    assert parser is not None
    return parser


@pytest.mark.parametrize("command", [*COMMANDS, *SUBCOMMANDS])
def test_it_fits_a_terminal(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    parser = parser_of(command, monkeypatch)
    for group in (None, "all"):
        shown = parser.format_help(group)
        assert [line for line in shown.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_it_fits_on_two_screens(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert len(parser_of(command, monkeypatch).format_help().splitlines()) <= 2 * 50


@pytest.mark.parametrize("command", ["sweep", "submit", "farm", "repeat", "run"])
def test_rare_options_have_a_help_of_their_own(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def shown(word: str) -> str:
        monkeypatch.setattr(sys, "argv", ["runyard", command, word])
        with pytest.raises(SystemExit) as left:
            main([command, word])
        assert left.value.code == 0
        return capsys.readouterr().out

    usual, everything = shown("--help"), shown("--help-all")
    assert "--gpus" in usual
    assert "--help-slurm" in usual
    for word, option in (("--help-slurm", "--reservation"), ("--help-environment", "--module")):
        assert option not in usual
        assert option in shown(word)
        assert option in everything
    assert "--module" not in shown("--help-slurm")
    options = re.findall(r"^  (--[a-z-]+)", usual, re.MULTILINE)
    assert [option for option in options if option not in everything] == []


@pytest.mark.parametrize("command", [*COMMANDS, *SUBCOMMANDS])
def test_what_to_type_comes_before_the_explanations(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, examples, *_ = re.split(r"\n\n", parser_of(command, monkeypatch).description or "")
    assert examples.startswith("  ")
    assert f"runyard {command}" in examples


@pytest.mark.parametrize("command", [*COMMANDS, *SUBCOMMANDS])
def test_every_option_is_explained(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    actions = parser_of(command, monkeypatch)._actions
    assert [one.option_strings or one.dest for one in actions if not one.help] == []
    for one in actions:
        if one.default not in (None, False, True, argparse.SUPPRESS, []):
            assert "default" in (one.help or ""), f"{one.dest} does not say its default"


def test_the_overview_fits_and_says_the_exit_codes() -> None:
    assert [line for line in overview().splitlines() if len(line) > 80] == []
    assert "exit codes:" in overview()


def test_prose_is_filled_and_examples_are_never_broken() -> None:
    text = (
        "Do it.\n\n"
        "  runyard do --this --that     with an explanation\n"
        "                               on two lines\n"
        "  runyard do                   short\n\n"
        "Prose that goes on\nfor a while."
    )
    assert lay_out(text, 100).split("\n\n")[1:] == [
        text.split("\n\n")[1],
        "Prose that goes on for a while.",
    ]
    assert lay_out(text, 30) == (
        "Do it.\n\n"
        "  runyard do --this --that\n      with an explanation on\n      two lines\n"
        "  runyard do\n      short\n\n"
        "Prose that goes on for a\nwhile."
    )


def test_a_python_without_our_packages_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def load(_: str) -> object:
        raise ModuleNotFoundError("No module named 'orjson'", name="orjson")

    monkeypatch.setattr("runyard.cli.parser.load", load)
    assert main(["runs"]) == 1
    told = capsys.readouterr().err
    assert f"this Python lacks orjson, which runyard needs: {sys.executable}" in told
    assert "mistake in runyard" not in told
