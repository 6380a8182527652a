"""The `command` of a sweep file: the words that start a run, and the macros among them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from runyard.reading.fields import Fields
from runyard.reading.problems import Problem, choose, closest, kind_of, show

MACROS = (
    "env",
    "interpreter",
    "program",
    "args",
    "args_no_equals",
    "args_no_hyphens",
    "args_append_hydra",
    "args_override_hydra",
    "args_no_boolean_flags",
    "args_json",
    "args_json_file",
)

# The words of a command stay as they were typed: `1e5` stays `1e5`.
TYPED = (("command",),)

_SHELLS = ("sh", "bash", "zsh", "dash", "ksh", "/bin/sh", "/bin/bash")
# Set on the machine where a trial runs, maybe not where it is submitted.
_OF_THE_NODE = re.compile(r"(SLURM|CUDA|RUNYARD|WANDB|MASTER|LOCAL)_\w+|TMPDIR|RANK|WORLD_SIZE")
_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][\w:.-]*)\}")
_MACRO = re.compile(r"\$\{(.*)\}", re.DOTALL)
_VARIABLE = re.compile(r"envvar:[A-Z0-9_]*")


def read_command(fields: Fields, names: Collection[str]) -> tuple[Any, ...] | None:
    """The words as in the file. A word may contain a top-level parameter (`names`): W&B's
    documentation shows `--lr=${lr}`."""
    words = fields.items("command", "write a list, such as [python, ${program}, ${args}]")
    if not words:  # W&B takes an empty list for the usual command, as if the key were not there.
        return None
    for index, word in enumerate(words):
        _check_word(index, word, fields, names)
    if "${program}" in words and "program" not in fields:
        mend = "add program: train.py, or write the script in place of ${program}"
        index = words.index("${program}")
        fields.findings.error(("command", index), "${program} stands for nothing", mend)
    return tuple(words)


def _check_word(index: int, word: Any, fields: Fields, names: Collection[str]) -> None:
    path = ("command", index)
    if word is None or isinstance(word, list | tuple | Mapping):
        fields.findings.error(
            path,
            f"a word of the command is {kind_of(word)}",
            "write one word, in quotes if need be",
        )
        return
    macro = _MACRO.fullmatch(word) if isinstance(word, str) else None
    if macro is None:
        return
    inner = macro.group(1)
    if inner in MACROS or inner in names or _VARIABLE.fullmatch(inner):
        return
    if inner.startswith("envvar:"):
        mend = f"write ${{{'envvar:' + inner[7:].upper()}}}: W&B's agent knows capitals, digits, _"
    else:
        mend = choose(inner, [*MACROS, "envvar:NAME"])
    # W&B starts the run without a warning, so the values may never arrive.
    fields.findings.warn(path, f"{show(word)} is no macro, and becomes nothing", mend)


def unfilled(
    command: Sequence[Any], names: Collection[str], environ: Mapping[str, str]
) -> Iterator[Problem]:
    """Warnings about placeholders inside longer words that nothing replaces."""
    for index, word in enumerate(command):
        if not isinstance(word, str) or _MACRO.fullmatch(word):
            continue
        before = command[max(index - 2, 0) : index]
        is_script = len(before) == 2 and before[0] in _SHELLS and before[1].startswith("-")
        for inner in dict.fromkeys(_PLACEHOLDER.findall(word)):
            reason = _reason(inner, names, environ, is_script)
            if reason is not None:
                what = f"{show('${' + inner + '}')} in {show(word)} {reason[0]}"
                yield Problem(("command", index), what, reason[1], is_error=False)


def _reason(
    inner: str, names: Collection[str], environ: Mapping[str, str], is_script: bool
) -> tuple[str, str] | None:
    """Why nothing replaces a placeholder, and the mend. A shell replaces its own variables."""
    if inner in MACROS:
        return ("stays as written: it is filled in only as a word of its own",
                "write the words of the command one by one")  # fmt: skip
    if inner in names or _VARIABLE.fullmatch(inner) or is_script:
        return None
    if inner.startswith("envvar:"):
        name = inner.removeprefix("envvar:").upper()
        return (
            "stays as written",
            f"write ${{envvar:{name}}}: W&B's agent knows capitals, digits, _",
        )
    if inner in environ or _OF_THE_NODE.fullmatch(inner):
        return None
    near = closest(inner, names)
    mend = f"did you mean ${{{near}}}?" if near else f"set {inner} where the trials run"
    return "is no parameter, and no variable that is set here: it stays as written", mend
