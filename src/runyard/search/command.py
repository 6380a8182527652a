"""The `command` of a sweep file: the words that start a run, and the macros among them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from runyard.reading.fields import Fields
from runyard.reading.problems import choose, kind_of, show

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

_MACRO = re.compile(r"\$\{(.*)\}", re.DOTALL)
_VARIABLE = re.compile(r"envvar:[A-Z0-9_]*")


def read_command(fields: Fields, names: Collection[str]) -> tuple[Any, ...] | None:
    """The words, as they are written. `names` are the top-level parameters, which a word may take
    in: W&B's documents show `--lr=${lr}`."""
    words = fields.items("command", "write a list, such as [python, ${program}, ${args}]")
    if words is None:
        return None
    if not words:
        fields.error("command", "the command is empty", "write its words, or remove the key")
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
    # W&B starts the run without a word, so the values may never arrive.
    fields.findings.warn(path, f"{show(word)} is no macro, and becomes nothing", mend)
