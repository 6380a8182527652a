"""Before anything is made: does the program know what it will be given?"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard.actions.events import Notice, Notify
from runyard.config.program_check import Arguments, Finding, check
from runyard.config.program_source import Source, read_source
from runyard.errors import ConfigError

if TYPE_CHECKING:
    from runyard.actions.sweeping.sweep_plan import Plan
    from runyard.config.task_list import TaskList
    from runyard.search.sweep import Sweep

_MOST_FILES, _LARGEST_FILE = 200, 1 << 20
_MOST_VALUES, _MOST_SHOWN = 50, 8
# Nothing that a shell would change, and no folder that may be made on the node.
_PLAIN_PROGRAM = re.compile(r"(?:[\w./-]*/)?python[\d.]* ([\w.-][\w./-]*\.py)(?= |$)(?!.*&&)")
_SHELL = frozenset(";|&<>()")
_AS_OPTIONS = ("${args}", "${args_no_equals}", "${args_no_boolean_flags}")


def check_plan(plan: Plan, notify: Notify, *, refuses: bool = True) -> None:
    """Tell what looks wrong about a sweep's program; refuse what would certainly fail."""
    program = _program_of(plan.sweep)
    if program is None or plan.sweep.options.tasks:
        return
    source = _read(plan.folder / program)
    if source is None:
        return
    findings = check(source, _given(plan.sweep), _mentioner(plan.folder, source))
    _tell([(program, finding) for finding in findings], plan.source, notify, refuses=refuses)


def check_tasks(tasks: TaskList, folder: Path, notify: Notify, *, refuses: bool = True) -> None:
    """The same for a list of command lines, whose options are looked at."""
    findings: dict[str, tuple[str, Finding]] = {}
    counts: dict[str, int] = {}
    for number, task in tasks.tasks.items():
        missing = _missing(task.command_line, folder)
        if missing is not None:
            what, mend = f"is not in {folder}", "write it as it is seen from there"
            finding = Finding(what, mend, is_error=True)
            findings.setdefault(missing, (f"line {number}: {missing}", finding))
            counts[missing] = counts.get(missing, 0) + 1
        for program, words in _programs_in(task.command_line):
            source = _read(folder / program)
            if source is None or source.parser is None:
                continue
            arguments = Arguments(
                {},
                written=_options(words),
                letters=_letters(words),
                other_words=_others(words),
                in_config=False,
            )
            for finding in check(source, arguments, lambda _name: True):
                key = f"{program} {finding.what}"
                counts[key] = counts.get(key, 0) + 1
                findings.setdefault(key, (f"line {number}: {program}", finding))
    shown = [
        (f"{where} (and {counts[key] - 1} more)" if counts[key] > 1 else where, finding)
        for key, (where, finding) in findings.items()
    ]
    _tell(shown, tasks.source, notify, refuses=refuses)


def _tell(
    findings: Sequence[tuple[str, Finding]], source: str, notify: Notify, *, refuses: bool
) -> None:
    errors = [entry for entry in findings if entry[1].is_error]
    for where, finding in findings:
        if not finding.is_error or not refuses:
            notify(Notice(f"{_where(where, finding)}: {finding.what}; {finding.mend}"))
    if not errors or not refuses:
        return
    lines = [
        f"{_where(where, finding)}: {finding.what}\n    {finding.mend}"
        for where, finding in errors[:_MOST_SHOWN]
    ]
    if len(errors) > _MOST_SHOWN:
        lines.append(f"... and {len(errors) - _MOST_SHOWN} more")
    raise ConfigError(
        f"{source}: what it would run ends at once; nothing was made",
        said="\n  ".join(["", *lines]),
        mend="--no-check runs it all the same",
    )


def _where(where: str, finding: Finding) -> str:
    return where if finding.line is None else f"{where}:{finding.line}"


def _program_of(sweep: Sweep) -> str | None:
    words = [str(word) for word in sweep.command or ("${program}",)]
    if "${program}" in words:
        return sweep.program
    return next((word for word in words if word.endswith(".py")), None)


def _given(sweep: Sweep) -> Arguments:
    words = [str(word) for word in sweep.command or ("${program}", "${args}")]
    start = next(
        (n for n, word in enumerate(words) if word == "${program}" or word.endswith(".py")), 0
    )
    behind = words[start + 1 :]
    return Arguments(
        _examples(sweep),
        as_options=any(word in words for word in _AS_OPTIONS),
        flags_alone="${args_no_boolean_flags}" in words,
        written=_options(behind),
        letters=_letters(behind),
        other_words=_others([word for word in behind if not word.startswith("${args")]),
    )


def _examples(sweep: Sweep) -> dict[str, list[Any]]:
    """Values of each parameter, spread over what it can be; none of groups."""
    examples: dict[str, list[Any]] = {}
    for constant in sweep.space.constants:
        examples[constant.path[0]] = [constant.value] if len(constant.path) == 1 else []
    for leaf in sweep.space.leaves:
        law = leaf.distribution
        places = (
            [float(place) for place in range(min(leaf.categories, _MOST_VALUES))]
            if leaf.is_categorical
            else [0.01, 0.37, 0.99]
        )
        values = [law.decode(place) for place in places]
        examples[leaf.path[0]] = values if len(leaf.path) == 1 else []
    options = sweep.options
    if options.seeds:
        examples[options.seed_parameter] = list(options.seeds)
    return examples


def _options(words: Iterable[str]) -> list[str]:
    return [word[2:].partition("=")[0] for word in words if word.startswith("--") and len(word) > 2]


def _letters(words: Iterable[str]) -> list[str]:
    return [word[1] for word in words if len(word) > 1 and word[0] == "-" and word[1] != "-"]


def _others(words: Sequence[str]) -> int:
    return sum(not word.startswith("-") for word in words)


def _programs_in(line: str) -> list[tuple[str, list[str]]]:
    """The Python programs of a shell's line, each with the words behind it."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.commenters = "#"
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return []
    programs: list[tuple[str, list[str]]] = []
    current: list[str] | None = None
    for word in words:
        if word and set(word) <= _SHELL:
            current = None
        elif current is not None:
            current.append(word)
        elif word.endswith(".py") and not word.startswith("-"):
            current = []
            programs.append((word, current))
    # Where the shell puts words of its own in, nobody knows them before.
    return [
        (program, behind)
        for program, behind in programs
        if not any("$" in word or "`" in word for word in behind)
    ]


def _missing(line: str, folder: Path) -> str | None:
    """The program of a plain line, `python train.py ...`, that is not there to be run."""
    match = _PLAIN_PROGRAM.match(line)
    return match[1] if match and not (folder / match[1]).exists() else None


@lru_cache(64)
def _read(path: Path) -> Source | None:
    if path.suffix not in (".py", ".pyw"):
        return None
    try:
        return read_source(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeError):
        return None


def _mentioner(folder: Path, source: Source) -> Callable[[str], bool]:
    """Whether a name stands in the program or in a module beside it."""
    texts: list[str] = []

    def mentions(name: str) -> bool:
        if name in source.words or name.replace("-", "_") in source.words:
            return True
        if not texts:
            texts.extend(_texts_in(folder))
        word = re.compile(rf"\b{re.escape(name)}\b|\b{re.escape(name.replace('-', '_'))}\b")
        return any(word.search(text) for text in texts)

    return mentions


def _texts_in(folder: Path) -> list[str]:
    texts = [""]
    patterns = ("*.py", "*/*.py", "*.yaml", "*/*.yaml")
    paths = sorted(path for pattern in patterns for path in folder.glob(pattern))
    for path in paths[:_MOST_FILES]:
        try:
            if path.stat().st_size <= _LARGEST_FILE and "sweep" not in path.stem:
                texts.append(path.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue
    return texts
