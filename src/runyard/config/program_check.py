"""Whether a program knows the parameters that it is given, and gets those that it reads.

An error only where the program would certainly end at once; what merely looks wrong is a warning.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runyard.config.program_source import Option, Source

_READ_BY = {"int": int, "float": float}
# Set by `wandb` itself, or by whoever starts a program.
_NEVER_MISSED = frozenset(("wandb", "_wandb"))


@dataclass(frozen=True)
class Finding:
    """Something about a program and its parameters; `is_error`: it would end at once."""

    what: str
    mend: str
    is_error: bool = False
    line: int | None = None


@dataclass(frozen=True)
class Arguments:
    """What a program is given: examples of each parameter's values, and in which form."""

    values: Mapping[str, Sequence[Any]]
    # As --name=value, or --name value; else by wandb.config or in a file.
    as_options: bool = True
    # A truth is a mere --name, or nothing.
    flags_alone: bool = False
    # Options that stand in the command itself, and words without dashes behind the program.
    written: Collection[str] = ()
    # Options of one letter that stand there.
    letters: Collection[str] = ()
    other_words: int = 0
    # Whether the same values are in `wandb.config` too, as an agent sees to it.
    in_config: bool = True


def check(source: Source, arguments: Arguments, mentions: Callable[[str], bool]) -> list[Finding]:
    """`mentions`: whether a name stands anywhere in the program's own files."""
    findings: list[Finding] = []
    if arguments.as_options and source.parser in ("argparse", "click"):
        for name, values in arguments.values.items():
            findings += _check_option(source, name, values, arguments)
        for name in arguments.written:
            findings += _check_option(source, name, (), arguments)
        findings += _check_required(source, arguments)
    if arguments.in_config:
        findings += _check_reads(source, arguments)
        known = {finding.what for finding in findings}
        findings += [
            finding
            for finding in _check_unread(source, arguments, mentions)
            if finding.what not in known
        ]
    return findings


def _check_option(
    source: Source, name: str, values: Sequence[Any], arguments: Arguments
) -> list[Finding]:
    option = source.find(name)
    if option is None:
        return [] if source.takes_unknown or not source.is_whole else [_unknown(source, name)]
    is_bool = bool(values) and all(isinstance(value, bool) for value in values)
    if option.is_flag:
        if not values or (arguments.flags_alone and is_bool):
            return []
        mend = "write ${args_no_boolean_flags} for ${args} in the command"
        if not is_bool:
            mend = f"take the value: add_argument('--{name}') without action="
        return [Finding(f"--{name} takes no value, and is given one", mend, source.is_whole,
                        option.line)]  # fmt: skip
    if option.type == "bool" and values:
        return [Finding(f"--{name} is read with bool, which takes any text for true, False too",
                        "read it with a function of your own, or give 0 and 1 as int",
                        line=option.line)]  # fmt: skip
    return _check_values(source, option, name, values)


def _check_values(
    source: Source, option: Option, name: str, values: Sequence[Any]
) -> list[Finding]:
    read = _READ_BY.get(option.type, str)
    for value in values:
        try:
            got = read(str(value))
        except ValueError:
            return [Finding(f"--{name} is read with {option.type}, which refuses {value!r}",
                            "give whole numbers, or read it with float"
                            if option.type == "int" else "give numbers",
                            source.is_whole and source.parser == "argparse",
                            option.line)]  # fmt: skip
        if option.choices is not None and got not in option.choices:
            shown = ", ".join(map(str, option.choices[:6]))
            return [Finding(f"--{name} takes one of {shown}, and is given {value!r}",
                            "give one of those, or add it to choices=",
                            source.is_whole, option.line)]  # fmt: skip
    return []


def _unknown(source: Source, name: str) -> Finding:
    options = [name.lstrip("-") for option in source.options for name in option.names]
    guess = name.replace("_", "-") if name.replace("_", "-") in options else None
    guess = guess or (name.replace("-", "_") if name.replace("-", "_") in options else None)
    close = [guess] if guess else difflib.get_close_matches(name, options, 1)
    mend = f"did you mean --{close[0]}?" if close else f"add the option, or leave {name} out"
    return Finding(f"it has no option --{name}", mend, is_error=True)


def _check_required(source: Source, arguments: Arguments) -> list[Finding]:
    if not source.is_whole:
        return []
    names = {*arguments.values, *arguments.written, *arguments.letters}
    findings = []
    for option in source.options:
        if not option.required:
            continue
        if option.is_positional:
            if not arguments.other_words:
                findings.append(Finding(f"it needs a word without dashes, {option.names[0]}",
                                     "write it into the command, behind ${program}", is_error=True,
                                     line=option.line))  # fmt: skip
        elif not names & {name.lstrip("-") for name in option.names}:
            name = option.names[-1]
            findings.append(Finding(f"it needs {name}, which it is not given",
                                 f"add {name.lstrip('-')} to the parameters, or give it a default",
                                 is_error=True, line=option.line))  # fmt: skip
    return findings


def _check_reads(source: Source, arguments: Arguments) -> list[Finding]:
    """What it reads of wandb.config and nobody gives."""
    there = {*arguments.values, *source.sets, *_NEVER_MISSED}
    missing = {name: line for name, line in source.reads.items() if name not in there}
    if not missing or not source.sets_are_whole:
        return []
    return [
        Finding(f"it reads wandb.config.{name}, which it is not given",
                _did_you_mean(name, arguments.values) or f"add {name} to the parameters", line=line)
        for name, line in missing.items()
    ]  # fmt: skip


def _check_unread(
    source: Source, arguments: Arguments, mentions: Callable[[str], bool]
) -> list[Finding]:
    known = {name.lstrip("-") for option in source.options for name in option.names}
    return [
        Finding(f"nothing in it speaks of {name!r}",
                _did_you_mean(name, {*source.reads, *known}) or "check its spelling")
        for name in arguments.values
        if source.find(name) is None
        and not mentions(name)
        and not (source.parser in ("argparse", "click") and source.is_whole and arguments.as_options
                 and not source.takes_unknown)
    ]  # fmt: skip


def _did_you_mean(name: str, others: Collection[str]) -> str | None:
    close = difflib.get_close_matches(name, list(others), 1)
    return f"did you mean {close[0]}?" if close else None
