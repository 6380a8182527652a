"""Command-line parsing whose mistakes are answered with the nearest valid word."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn, Protocol, cast

from runyard.cli.catalog import COMMANDS, module_of, now_called
from runyard.cli.help_text import HelpFormatter, HelpParser
from runyard.cli.letters import advice_on
from runyard.errors import UsageError
from runyard.reading.problems import nearest
from runyard.reading.units import TIME_FORMS, read_seconds


class Command(Protocol):
    """What a command's module has."""

    __doc__: str | None

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None: ...

    @staticmethod
    def run(args: argparse.Namespace) -> int: ...


class Parser(HelpParser):
    """argparse that raises instead of exiting, and suggests."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("allow_abbrev", False)
        kwargs.setdefault("formatter_class", HelpFormatter)
        super().__init__(*args, **kwargs)

    def error(self, message: str) -> NoReturn:
        mend = f"`{self.prog} --help` shows what it takes"
        example = re.search(rf"^  ({self.prog} .*?)(?:  |$)", self.description or "", re.M)
        if example is not None and message.startswith("the following arguments are required"):
            mend = f"{example[1]}   ({mend})"
        letter = re.match(r"argument (-\w)/\S+: ('(.*?)')?", message)
        if letter is not None:
            mend = f"{advice_on(letter[1], self._option_string_actions)}; {mend}"
            long = f"-{letter[1]}{letter[3]}"  # `-name` was read as `-n ame`.
            mend = f"did you mean {long}?" if long in self._option_string_actions else mend
        raise UsageError(f"{self.prog}: {message}", mend=mend)

    def refuse_unknown(self, words: Sequence[str]) -> NoReturn:
        options = list(self._option_string_actions)
        word = next((word for word in words if word.startswith("-")), words[0])
        name = word.split("=")[0]
        kind = "option" if word.startswith("-") else "argument"
        command = self.prog.partition(" ")[2]
        if now := now_called(f"{command} {name}"):
            raise UsageError(now)
        mend = advice_on(name[:2], options) if re.match(r"-\w", name) else None
        raise UsageError(
            f"{self.prog} has no {kind} {name!r}", mend=mend or _advice(name, options, self.prog)
        )

    def refuse_single_dashes(self, words: Sequence[str], args: argparse.Namespace) -> None:
        """`-name x` would be `-n ame`, and x the program."""
        rest = [action.dest for action in self._actions if action.nargs == argparse.REMAINDER]
        theirs = len(getattr(args, rest[0], None) or ()) if rest else 0
        own = list(words[: len(words) - theirs])
        own = own[: own.index("--")] if "--" in own else own
        for word in own:
            name = word.split("=")[0]
            if re.fullmatch(r"-[a-z][a-z-]+", name) and f"-{name}" in self._option_string_actions:
                raise UsageError(
                    f"{self.prog} has no option {name!r}", mend=f"did you mean -{name}?"
                )

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            name = "/".join(action.option_strings) or str(action.metavar or action.dest)
            raise UsageError(
                f"{self.prog}: {name} cannot be {value!r}",
                mend=f"{_advice(str(value), choices, self.prog)} ({', '.join(choices)})",
            )


def build_parser(command: str | None) -> tuple[Parser, Parser | None]:
    """The whole parser, and the named command's; only that command's module is loaded.

    A command of two words is a parser of the first word's name, which takes the second one.
    """
    parser = Parser(
        prog="runyard",
        description="Take an experiment that works on a laptop to the cluster and back.",
        epilog="`runyard COMMAND --help` says more about each.",
    )
    flag(parser, "--version", "print the version and exit")
    _add_debug(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    chosen = None
    first, _, second = (command or "").partition(" ")
    for name, help_text in COMMANDS.items():
        if name == first:
            module = load(str(command))
            chosen = commands.add_parser(
                name, help=help_text, description=module.__doc__, prog=f"runyard {command}"
            )
            chosen.set_defaults(command=command, parser=chosen)
            if second:
                chosen.add_argument("subcommand", choices=(second,), help=argparse.SUPPRESS)
            _add_debug(chosen)
            module.add_arguments(chosen)
        else:
            commands.add_parser(name, help=help_text, add_help=False)
    return parser, chosen


def load(name: str) -> Command:
    return cast(Command, import_module(module_of(name)))


def add(group: Any, words: str, text: str, *, completer: Any = None, **more: Any) -> None:
    """Give a parser, or a group of one, an argument, in words as help shows them: `-l --limit N`,
    `what SWEEP|TRIAL`."""
    names = re.match(r"-[^ ]*( -[^ ]*)*|[^ ]*", words)
    assert names is not None
    if metavar := words[names.end() + 1 :]:
        more["metavar"] = metavar
    group.add_argument(*names[0].split(), help=text, **more).completer = completer


def flag(group: Any, words: str, text: str, **more: Any) -> None:
    """An option without a value."""
    add(group, words, text, action="store_true", **more)


def add_program(parser: Any, text: str, metavar: str = "-- PROGRAM ...", **more: Any) -> None:
    """What ends a command line, and is not the command's own."""
    add(parser, f"program {metavar}", text, nargs=argparse.REMAINDER, **more)


def program_words(args: argparse.Namespace) -> list[str]:
    """Without -- before it, what looks like an option is one that the command has not."""
    words: list[str] = args.program
    if words[:1] == ["--"]:
        return words[1:]
    if words and words[0].startswith("-"):
        args.parser.refuse_unknown(words)
    return words


def typed(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """For `type=`: a reader whose ValueError says what is wrong."""

    def parse(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse


def _whole(least: int, most: float, what: str) -> Callable[[str], int]:
    """For `type=`: a whole number between two others."""

    def parse(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return int(text)

    return parse


count = _whole(0, math.inf, "a whole number, 0 or more")
positive = _whole(1, math.inf, "a whole number, 1 or more")
# The kernel would take a larger one modulo 65536.
port = _whole(0, 65535, "a port: 1 to 65535, or 0 for a free one")


def refuse_options(args: argparse.Namespace, names: str, why: str, mend: str) -> None:
    """Refuse those of some options that are given and mean nothing here; {0} is the option."""
    for name in names.split():
        value = getattr(args, name.replace("-", "_"), None)
        if value not in (None, []) and value is not False:  # 0 is a value.
            raise UsageError(why.replace("{0}", f"--{name}"), mend=mend.replace("{0}", f"--{name}"))


def duration(text: str) -> float:
    """For `type=`: a length of time, as 90, 90s, 1.5h, 2h30m, or as Slurm's 1-12:30:00."""
    seconds = read_seconds(text)
    if seconds is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no length of time: {TIME_FORMS}")
    return seconds


def unknown_command(word: str) -> UsageError:
    if now := now_called(word):
        return UsageError(now)
    kind = "option" if word.startswith("-") else "command"
    known = ["--help", "--version", "--debug"] if kind == "option" else list(COMMANDS)
    return UsageError(f"runyard has no {kind} {word!r}", mend=_advice(word, known, "runyard"))


def _advice(word: str, known: Sequence[str], prog: str) -> str:
    guess = nearest(word, known)
    return f"did you mean {guess}?" if guess else f"`{prog} --help` lists what there is"


def _add_debug(parser: argparse.ArgumentParser) -> None:
    # SUPPRESS, so that a command's default does not undo what stood before the command.
    flag(parser, "--debug", "show where in runyard an error came from", default=argparse.SUPPRESS)
