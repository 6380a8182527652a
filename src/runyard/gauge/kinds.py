"""Kinds of experiments: programs whose figures are kept apart. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

_SCRIPTS = (".py", ".jl", ".r", ".sh", ".m", ".lua", ".rb", ".pl")
_PYTHON = re.compile(r"(?:.*/)?python[\d.]*$")
_LONGEST = 200


def kind_of(words: Sequence[str], by: Sequence[str] = ()) -> str:
    """The program, and the values of the options that tell kinds apart: `train.py algo=ppo`."""
    program, behind = _program(words)
    values = _options(behind)
    told = [f"{name}={values[name]}" for name in by if name in values]
    return " ".join([program, *told])[:_LONGEST]


def kind_of_line(line: str, by: Sequence[str] = ()) -> str:
    """The same of a line of shell."""
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
    """The same of a sweep; of what it searches over, kinds cannot be told apart."""
    words = [str(word) for word in command or ("${program}",)]
    words = [program if word == "${program}" and program else word for word in words]
    told = [f"--{name}={constants[name]}" for name in by if name in constants]
    return kind_of([word for word in words if not word.startswith("${")] + told, by)


def _program(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    for place, word in enumerate(words):
        if word.lower().endswith(_SCRIPTS) and not word.startswith("-"):
            return _short(word), words[place + 1 :]
        is_module = word == "-m" and place > 0 and _PYTHON.match(words[place - 1])
        if is_module and place + 1 < len(words):
            return words[place + 1], words[place + 2 :]
    first = next((word for word in words if "=" not in word), "program")
    return PurePosixPath(first).name or "program", words[1:]


def _short(path: str) -> str:
    """As it is called in the project: `./train.py` and `/home/me/p/train.py` are `train.py`."""
    found = PurePosixPath(path)
    return found.name if found.is_absolute() else str(found)


def _options(words: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for place, word in enumerate(words):
        name, sign, value = word.lstrip("-").partition("=")
        if sign:
            found[name] = value
        elif word.startswith("-") and place + 1 < len(words):
            found[name] = words[place + 1]
    return found
