"""Kinds of experiments: figures are stored for each kind separately. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from runyard.node.devices.pack_memory import program_of

_LONGEST = 200


def kind_of(words: Sequence[str], by: Sequence[str] = ()) -> str:
    """The program, and the values of the options in `by`: `train.py algo=ppo`."""
    program, behind = program_of(words)
    values = _options(behind)
    options = [f"{name}={values[name]}" for name in by if name in values]
    return " ".join([program, *options])[:_LONGEST]


def kind_of_line(line: str, by: Sequence[str] = ()) -> str:
    """The same for a line of shell."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        words = line.split()
    return kind_of(words, by)


def kind_of_sweep(
    command: Sequence[Any] | None,
    program: str | None,
    constants: Mapping[str, Any],
    by: Sequence[str] = (),
) -> str:
    """The same for a sweep. Parameters that it searches cannot be part of the kind."""
    words = [str(word) for word in command or ("${program}",)]
    words = [program if word == "${program}" and program else word for word in words]
    options = [f"--{name}={constants[name]}" for name in by if name in constants]
    return kind_of([word for word in words if not word.startswith("${")] + options, by)


def _options(words: Sequence[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for place, word in enumerate(words):
        name, sign, value = word.lstrip("-").partition("=")
        if sign:
            options[name] = value
        elif word.startswith("-") and place + 1 < len(words):
            options[name] = words[place + 1]
    return options
