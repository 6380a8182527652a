"""The file from which a trial's wandb client takes its values: `WANDB_SWEEP_PARAM_PATH`.

It is YAML, and read by PyYAML. Written by hand, since the node has the standard library only.
"""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def parameter_file(values: Mapping[str, Any]) -> str:
    """The text: for every top-level parameter its value, one a line."""
    lines = [f"{_quoted(name)}: {{value: {_flow(value)}}}" for name, value in values.items()]
    return "\n".join(["wandb_version: 1", *lines]) + "\n"


def _flow(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(k)}: {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _quoted(str(value))


def _number(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    digits = repr(value)
    # To YAML 1.1 a number without a dot is a text: 1e-05.
    return digits if "." in digits else digits.replace("e", ".0e")


def _quoted(text: str) -> str:
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(letter: str) -> str:
    code = ord(letter)
    if letter in '"\\':
        return f"\\{letter}"
    if 0x20 <= code < 0x7F:
        return letter
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
