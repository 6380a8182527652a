"""Command lines as tasks: read from a file, or from a line with braces; named by what differs.

A line is the shell's, as GNU parallel takes it. Empty lines and lines that begin with `#` are
passed over; a task's number is that of its line, as in GNU parallel's job log.
"""

from __future__ import annotations

import math
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.config.braces import MOST_LINES, TooMany, expand
from runyard.config.command_file import LONGEST_LINE
from runyard.config.task_files import STANDARD_INPUT
from runyard.errors import ConfigError, NotFoundError
from runyard.search.names import LONGEST, trial_name
from runyard.search.tasks import COMMAND_LINE, NUMBER, Task

SEED = "seed"
# What is no option: the program, its arguments. A value where it differs from line to line.
WORDS = "words"
# A name of more parts than this says nothing any more.
_MOST_PARTS = 6
_ASSIGNED = re.compile(r"\+{0,2}([A-Za-z_][\w.]*)=(.*)", re.DOTALL)
_OPTION = re.compile(r"--([A-Za-z][\w.-]*)(?:=(.*))?", re.DOTALL)


@dataclass(frozen=True)
class Line:
    number: int
    text: str


@dataclass(frozen=True)
class TaskList:
    """Tasks by their numbers, and where they come from."""

    source: str
    tasks: Mapping[int, Task]

    @property
    def seeds(self) -> int:
        """How many seeds the tasks have between them."""
        return len({task.values[SEED] for task in self.tasks.values() if SEED in task.values})

    def with_seeds(self, seeds: Sequence[int]) -> TaskList:
        """The seed of each task by its place, however its line spells it."""
        pairs = zip(self.tasks.items(), seeds, strict=True)
        return TaskList(
            self.source,
            {
                number: Task(f"{SEED}{seed}".replace("-", "m"), task.command_line,
                             {**{k: v for k, v in task.values.items() if k != WORDS}, SEED: seed})
                for (number, task), seed in pairs
            },
        )  # fmt: skip

    def renamed(self, name: str) -> TaskList:
        """A list of one, under another name."""
        return TaskList(
            self.source,
            {
                n: Task(safe_name(name), task.command_line, task.values)
                for n, task in self.tasks.items()
            },
        )

    def only(self, numbers: Sequence[int]) -> TaskList:
        wanted = set(numbers)
        return TaskList(self.source, {n: task for n, task in self.tasks.items() if n in wanted})


def safe_name(name: str) -> str:
    """As a task may be called."""
    return re.sub(r"[^A-Za-z0-9_.=+-]+", "-", name)[-LONGEST:].lstrip("_.=+-") or "task"


def read_task_file(path: str) -> TaskList:
    """The tasks of a file, or of standard input for `-`."""
    source = "standard input" if path == STANDARD_INPUT else path
    lines = [
        Line(number, text.strip())
        for number, text in enumerate(_read_text(path).split("\n"), start=1)
        if text.strip() and not text.lstrip().startswith("#")
    ]
    if not lines:
        raise ConfigError(
            f"{source} holds no command line", mend="write one a line; `#` begins a comment"
        )
    return make_tasks(source, lines)


def tasks_of_grid(text: str) -> TaskList:
    """A task for every combination of what the braces of a line hold."""
    try:
        lines = expand(text)
    except TooMany as error:
        raise ConfigError(
            f"--grid makes {error}", mend="a sweep file with method: grid takes any number"
        ) from error
    return make_tasks("--grid", [Line(number, line) for number, line in enumerate(lines, start=1)])


def make_tasks(source: str, lines: Sequence[Line]) -> TaskList:
    if len(lines) > MOST_LINES:
        raise ConfigError(
            f"{source} holds {len(lines):,} command lines, and at most {MOST_LINES:,} are taken",
            mend="make several lists of it, or a sweep file with method: grid",
        )
    options_of = {line.number: _options(source, line) for line in lines}
    differing = _differing(list(options_of.values()))
    if WORDS not in differing:
        options_of = {
            n: {k: v for k, v in value.items() if k != WORDS} for n, value in options_of.items()
        }
    taken = set[str]()
    tasks = {}
    for line in lines:
        values = options_of[line.number]
        shown = {name: value for name, value in values.items() if name in differing}
        options = {name: value for name, value in shown.items() if name != WORDS}
        name = f"line{line.number}"
        if 0 < len(options) <= _MOST_PARTS:
            name = trial_name(options, taken.__contains__)
        taken.add(name)
        tasks[line.number] = Task(name, line.text, values)
    return TaskList(source, tasks)


def sweep_config(listing: TaskList, shell: str, **options: Any) -> dict[str, Any]:
    """The sweep that runs a list: a grid over the tasks' numbers."""
    return {
        "method": "grid",
        "parameters": {NUMBER: {"values": list(listing.tasks)}},
        "command": [shell, "-c", f"${{{COMMAND_LINE}}}"],
        "runyard": {
            "tasks": [task.to_json() for task in listing.tasks.values()],
            **{name: value for name, value in options.items() if value is not None},
        },
    }


def as_value(text: str) -> int | float | str:
    """A word as a config has it."""
    # Not what Python alone takes for a number: 1_000, nan, " 1".
    if re.fullmatch(r"[-+]?[0-9]{1,18}", text):
        return int(text)
    if re.fullmatch(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?", text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text


def _options(source: str, line: Line) -> dict[str, Any]:
    """What a line says by `--name value`, `--name=value`, `name=value` and `--flag`."""
    if "\0" in line.text:
        raise ConfigError(f"{source}:{line.number}: this line holds a NUL", mend="remove it")
    if len(line.text) > LONGEST_LINE:
        raise ConfigError(
            f"{source}:{line.number}: this line is longer than {LONGEST_LINE:,} characters",
            mend="write what it does into a script, and run that",
        )
    try:
        reader = shlex.shlex(line.text, posix=True, punctuation_chars=True)
        reader.whitespace_split = True
        words = list(reader)
    except ValueError as error:
        raise ConfigError(
            f"{source}:{line.number}: the quotes of this line do not match",
            said=f"{error}: {line.text}",
            mend="close the quote, or put a backslash before a quote that is meant as a letter",
        ) from error
    options: dict[str, Any] = {}
    others: list[str] = []
    is_value = False
    for place, word in enumerate(words):
        if is_value:
            is_value = False
            continue
        option, assigned = _OPTION.fullmatch(word), _ASSIGNED.fullmatch(word)
        if option is not None:
            value: Any = True
            following = words[place + 1] if place + 1 < len(words) else None
            if option[2] is not None:
                value = as_value(option[2])
            elif following is not None and not _OPTION.fullmatch(following):
                value = as_value(following)
                is_value = True
            options[option[1].replace("-", "_")] = value
        elif assigned is not None:
            options[assigned[1]] = as_value(assigned[2])
        else:
            others.append(word)
    options = {name: value for name, value in options.items() if name not in (NUMBER, COMMAND_LINE)}
    return {WORDS: " ".join(others), **options}


def _differing(lines: Sequence[Mapping[str, Any]]) -> set[str]:
    """The options that not all lines have with the same value."""
    names = {name for line in lines for name in line}
    missing = object()
    return {
        name
        for name in names
        if any(line.get(name, missing) != lines[0].get(name, missing) for line in lines)
    }


def _read_text(path: str) -> str:
    try:
        if path == STANDARD_INPUT:
            return sys.stdin.read().replace("\r\n", "\n")
        return Path(path).read_text(encoding="utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        raise NotFoundError(
            f"there is no file {path}", mend="name a file with one command line a line"
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is no text in UTF-8", said=error) from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read", said=error.strerror) from None
