"""What is typed wrongly is answered with the nearest right word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runyard.cli.catalog import COMMANDS, FORMER, SUBCOMMANDS
from runyard.cli.main import main
from runyard.cli.overview import OPTIONS
from runyard.cli.parser import build_parser
from runyard.errors import RunyardError, format_error
from runyard.version import __version__

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("words", "wrong", "nearest"),
    [
        ("rnu", "rnu", "run"),
        ("logz", "logz", "logs"),
        ("sever start", "sever", "server"),
        ("help shwo", "shwo", "show"),
        ("--debg run", "--debg", "--debug"),
        ("--verison", "--verison", "--version"),
        ("run --nmae x", "--nmae", "--name"),
        ("run --nmae=x true", "--nmae", "--name"),
        ("run --tga a --nmae b true", "--tga", "--tag"),
        ("server strat", "strat", "start"),
        ("runs --stat x", "--stat", "--state"),
        ("runs --state finishd", "finishd", "finished"),
        ("runs --jsn", "--jsn", "--json"),
        ("env --shell fsh", "fsh", "fish"),
        ("completion bsh", "bsh", "bash"),
    ],
)
def test_the_nearest_valid_word_is_named(
    words: str, wrong: str, nearest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert repr(wrong) in told.err
    assert f"did you mean {nearest}?" in told.err
    assert "Traceback" not in told.err


@pytest.mark.parametrize("words", ["xyzzy", "runs --xyzzy", "server xyzzy", "runs -x", "show a b"])
def test_where_nothing_is_near_help_is_named(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    told = capsys.readouterr().err
    assert "did you mean" not in told
    assert "--help` " in told


@pytest.mark.parametrize(
    "words", ["runs -l x", "runs -l -3", "logs -l 1.5", "server start --port x"]
)
def test_a_number_is_a_number(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    assert words.split()[-1] in capsys.readouterr().err


@pytest.mark.parametrize("words", ["run", "run --", "run -e name", "run -e name --"])
def test_run_wants_a_program(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    assert "which program?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("variable", "value"),
    [("WANDB_RUN_ID", "a/b"), ("WANDB_RUN_ID", ".."), ("WANDB_RUN_ID", "x" * 129),
     ("WANDB_PROJECT", "a:b")],
)  # fmt: skip
def test_an_id_or_project_that_is_no_part_of_an_address(
    variable: str,
    value: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(variable, value)
    assert main(["run", "true"]) == 2
    assert "cannot be" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["--version", "-V", "--debug --version", "--version runs"])
def test_version(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 0
    assert capsys.readouterr().out == f"runyard {__version__}\n"


@pytest.mark.parametrize("words", ["", "--help", "-h", "help", "--debug", "--help run", "-h rnu"])
def test_help_lists_every_command_and_option(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 0
    shown = capsys.readouterr().out
    for command, text in COMMANDS.items():
        assert f"\n  {command} " in shown
        assert text in shown
    for option in OPTIONS:
        assert option in shown


def test_help_names_the_options_that_the_parser_takes() -> None:
    taken = {word for words in OPTIONS for word in words.split(", ")}
    assert taken - {"-V"} == set(build_parser(None)[0]._option_string_actions)


@pytest.mark.parametrize("command", [*COMMANDS, *SUBCOMMANDS])
@pytest.mark.parametrize("asked", ["help {}", "{} --help", "{} -h", "--debug {} --help"])
def test_help_of_a_command(command: str, asked: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(asked.format(command).split())
    assert left.value.code == 0
    assert f"usage: runyard {command}" in capsys.readouterr().out


def test_options_of_the_program_are_the_programs() -> None:
    parser, _ = build_parser("run")
    args, unknown = parser.parse_known_args(
        ["run", "-e", "one", "python", "train.py", "--name", "two", "--debug", "--", "--help"]
    )
    assert not unknown
    assert args.name == "one"
    assert args.program == ["python", "train.py", "--name", "two", "--debug", "--", "--help"]
    assert "debug" not in args


def test_debug_may_stand_before_and_behind_the_command() -> None:
    for words in (["--debug", "runs"], ["runs", "--debug"]):
        args, _ = build_parser("runs")[0].parse_known_args(words)
        assert args.debug is True


@pytest.mark.parametrize("place", [["--debug", "rnu"], ["runs", "--debug", "--stat"]])
def test_debug_shows_where(place: list[str]) -> None:
    with pytest.raises(RunyardError):
        main(place)


def test_an_error_says_what_failed_the_tools_words_and_what_to_do() -> None:
    error = RunyardError("cannot use it", said="No space left on device", mend="free some")
    assert format_error(error) == (
        "runyard: cannot use it\n  said: No space left on device\n  try:  free some"
    )
    assert format_error(RunyardError("cannot")) == "runyard: cannot"


@pytest.mark.parametrize("former", FORMER)
@pytest.mark.parametrize("typed", ["{}", "{} --json", "help {}"])
def test_a_former_name_answers_with_the_new_one_in_one_line(
    former: str, typed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command, _, option = former.partition(" ")
    if option and typed.startswith("help"):
        return
    assert main(typed.format(former).split()) == 2
    answer = capsys.readouterr()
    assert answer.out == ""
    assert answer.err == f"runyard: `runyard {former}` is now `runyard {FORMER[former]}`\n"
    assert option or command not in COMMANDS


# What was renamed stays as it was in the history of changes alone.
@pytest.mark.parametrize("former", FORMER)
def test_nothing_advises_to_type_a_former_name(former: str) -> None:
    typed = re.compile(rf"runyard {re.escape(former)}(?![\w-])")
    folders = ("docs", "examples", "src", "quickstart", "dashboard/app/src")
    files = [ROOT / "README.md", *(file for name in folders for file in (ROOT / name).rglob("*"))]
    texts = {
        file: file.read_text()
        for file in files
        if file.suffix in (".md", ".py", ".sh", ".txt", ".yaml", ".ts", ".tsx") and file.is_file()
    }
    named = [str(file) for file, text in texts.items() if typed.search(text)]
    assert named == [str(ROOT / "docs/reference/commands.md")]  # Its table of former names.


def test_every_new_name_is_a_command() -> None:
    assert [now for now in FORMER.values() if now.split()[0] not in COMMANDS] == []
