"""A trial's command line, from the sweep's `command` and the trial's values.

The macros are W&B's and mean what they mean there. Beyond them, `${name}` stands for a parameter's
value (W&B's documentation shows it, its agent leaves it) or for a variable of the node.
"""

from __future__ import annotations

import json
import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

_PLACEHOLDER = re.compile(r"\$\{([^{}]+)\}")
_ENVIRONMENT = re.compile(r"envvar:([A-Z0-9_]*)")


def expand(
    command: Sequence[object] | None,
    program: str | None,
    values: Mapping[str, Any],
    environ: Mapping[str, str],
    json_file: Callable[[str], str],
) -> list[str]:
    """The words to execute.

    `json_file` writes a JSON text to the trial's own file and returns its path; it is called only
    where the command asks for that.
    """
    words: list[str] = []
    for element in command or default_command(program):
        text = str(element)
        whole = _PLACEHOLDER.fullmatch(text)
        if whole is None:
            words.append(_PLACEHOLDER.sub(lambda match: _inside(match, values, environ), text))
        else:
            words += _whole(whole[1], program, values, environ, json_file)
    return words


def default_command(program: str | None) -> tuple[str, ...]:
    """W&B's own, except for a program that Python cannot run: that starts as in a shell."""
    if program is None or program.endswith((".py", ".pyw")):
        return ("${env}", "${interpreter}", "${program}", "${args}")
    if os.access(program, os.X_OK):
        # Without a slash the search path would be asked instead of the folder.
        return (program if "/" in program else f"./{program}", "${args}")
    if program.endswith((".sh", ".bash")):
        return ("${env}", "bash" if program.endswith(".bash") else "sh", "${program}", "${args}")
    return ("${env}", "${interpreter}", "${program}", "${args}")


def _whole(
    name: str,
    program: str | None,
    values: Mapping[str, Any],
    environ: Mapping[str, str],
    json_file: Callable[[str], str],
) -> list[str]:
    """What an element that is one placeholder becomes: any number of words."""
    if name in _ARGUMENTS:
        return [word for item in values.items() for word in _ARGUMENTS[name](*item)]
    if name == "env":
        return ["/usr/bin/env"]
    if name == "interpreter":
        return [_interpreter(environ)]
    if name == "program":
        return [program] if program is not None else []
    if name in ("args_json", "args_json_file"):
        text = json.dumps(dict(values))
        return [text if name == "args_json" else json_file(text)]
    variable = _ENVIRONMENT.fullmatch(name)
    if variable is not None:
        return [environ.get(variable[1], variable[1])]
    if name in values:
        return [str(values[name])]
    return [environ[name]] if name in environ else []


def _inside(match: re.Match[str], values: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """What a placeholder inside a longer element becomes; an unknown one stays as it is."""
    variable = _ENVIRONMENT.fullmatch(match[1])
    if variable is not None:
        return environ.get(variable[1], variable[1])
    if match[1] in values:
        return str(values[match[1]])
    return environ.get(match[1], match[0])


def _interpreter(environ: Mapping[str, str]) -> str:
    # Debian has no `python` unless an environment is active.
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    for name in ("python", "python3"):
        if any(os.access(f"{folder}/{name}", os.X_OK) for folder in folders):
            return name
    return "python"


def _without_boolean(name: str, value: object) -> list[str]:
    if isinstance(value, bool):
        return [f"--{name}"] if value else []
    return [f"--{name}={value}"]


_ARGUMENTS: Mapping[str, Callable[[str, object], list[str]]] = {
    "args": lambda name, value: [f"--{name}={value}"],
    "args_no_equals": lambda name, value: [f"--{name}", str(value)],
    "args_no_hyphens": lambda name, value: [f"{name}={value}"],
    "args_append_hydra": lambda name, value: [f"+{name}={value}"],
    "args_override_hydra": lambda name, value: [f"++{name}={value}"],
    "args_no_boolean_flags": _without_boolean,
}
