"""A function as a command line: every argument is a flag, written the way sweeps write them."""

from __future__ import annotations

import difflib
import inspect
import sys
import types
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from runyard.train.values import WORDS, parse

_EMPTY = inspect.Parameter.empty


def command(*functions: Callable[..., Any], argv: Sequence[str] | None = None) -> Any:
    """Call a function with the arguments of the command line, and return what it returns.

        def train(lr=1e-3, sizes=(64, 64), plot=False): ...
        train.command(train)            # python prog.py --lr=3e-3 --sizes=[32,32] --plot

    Of several functions the first word names the one to call. `--a-b` and `--a_b` are the same,
    `--plot`, `--no-plot` and `--plot=False` set bools, lists and dicts are written as Python or
    JSON writes them, and None is no value. Types come from annotations, else from defaults. A
    function with `**more` takes any flag.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    function = functions[0]
    if len(functions) > 1:
        by_name = {named.__name__.replace("_", "-"): named for named in functions}
        if words and words[0] in ("-h", "--help"):
            print(f"usage: {_program()} {{{','.join(by_name)}}} [--help]")
            raise SystemExit(0)
        chosen = words.pop(0).replace("_", "-") if words else ""
        if chosen not in by_name:
            _refuse(f"say what to do: {' or '.join(by_name)}")
        function = by_name[chosen]
    if any(word in ("-h", "--help") for word in words):
        print(_help(function))
        raise SystemExit(0)
    positional, named_values = _read(function, words)
    return function(*positional, **named_values)


def _read(function: Callable[..., Any], words: list[str]) -> tuple[list[Any], dict[str, Any]]:
    parameters = inspect.signature(function).parameters
    flags = {
        name: parameter
        for name, parameter in parameters.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    kinds = _kinds(function)
    loose: list[str] = []
    values: dict[str, Any] = {}
    while words:
        word = words.pop(0)
        if not word.startswith("--") or word == "--":
            loose.append(word)
            continue
        flag, equals, text = word[2:].partition("=")
        name = flag.replace("-", "_")
        if not equals and name.startswith("no_") and _is_bool(flags.get(name[3:]), kinds):
            values[name[3:]] = False
            continue
        if name not in flags and not takes_any:
            close = difflib.get_close_matches(name, flags, 1)
            _refuse(
                f"there is no option --{flag}"
                + (f"; did you mean --{close[0]}?" if close else f"; there are {_names(flags)}")
            )
        if not equals:
            if _is_bool(flags.get(name), kinds) and not (words and words[0] in _BOOLS):
                values[name] = True
                continue
            if not words or words[0].startswith("--"):
                if name in flags:
                    _refuse(f"--{flag} needs a value")
                values[name] = True
                continue
            text = words.pop(0)
        values[name] = _convert(text, name, flags.get(name), kinds)
    for word, (name, parameter) in zip(loose, flags.items(), strict=False):
        values.setdefault(name, _convert(word, name, parameter, kinds))
    if len(loose) > len(flags):
        _refuse(f"too many words: {' '.join(loose[len(flags) :])}")
    missing = [n for n, p in flags.items() if p.default is _EMPTY and n not in values]
    if missing:
        _refuse(f"{', '.join(f'--{name}' for name in missing)} must be given")
    by_place = [name for name, p in flags.items() if p.kind is p.POSITIONAL_ONLY]
    return [values.pop(name) for name in by_place if name in values], values


_BOOLS = {word for word, value in WORDS.items() if isinstance(value, bool)} | {"0", "1"}


def _is_bool(parameter: inspect.Parameter | None, kinds: dict[str, Any]) -> bool:
    if parameter is None:
        return False
    return kinds.get(parameter.name) is bool or isinstance(parameter.default, bool)


def _convert(
    text: str, name: str, parameter: inspect.Parameter | None, kinds: dict[str, Any]
) -> Any:
    try:
        if parameter is None:
            return parse(text)
        if name in kinds:
            return _as(kinds[name], text)
        return _as_default(parameter.default, text)
    except (ValueError, TypeError) as error:
        _refuse(f"--{name}={text}: {error}")


def _as_default(default: Any, text: str) -> Any:
    """Without an annotation the default tells the type; a whole number may become any number."""
    if isinstance(default, bool):
        return _as(bool, text)
    if isinstance(default, str):
        return None if text == "None" else text
    value = parse(text)
    if isinstance(default, float) and isinstance(value, int):
        return float(value)
    if isinstance(default, (list, tuple)) and isinstance(value, (list, tuple)):
        return type(default)(value)
    return value


def _as(kind: Any, text: Any) -> Any:
    """A text, or a value from inside a list, as the annotation wants it."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    value = parse(text) if isinstance(text, str) else text
    if origin in (typing.Union, types.UnionType):
        return _as_one_of(inside, text)
    if origin is typing.Literal:
        for choice in inside:
            if choice in (text, value):
                return choice
        raise ValueError(f"it is one of {', '.join(map(str, inside))}")
    if kind in (None, type(None)):
        if value is not None:
            raise ValueError("it is not None")
        return None
    if kind is str:
        return text if isinstance(text, str) else str(text)
    if kind is bool:
        if value not in (True, False):
            raise ValueError("it is True or False")
        return bool(value)
    if kind in (int, float):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError("it is no number")
        if kind is int and value != int(value):
            raise ValueError("it is no whole number")
        return kind(value)
    if (origin or kind) in (list, tuple, Sequence):
        items = value if isinstance(value, (list, tuple)) else [value]
        each = [member for member in inside if member is not Ellipsis] or [Any]
        converted = [_as(each[min(i, len(each) - 1)], item) for i, item in enumerate(items)]
        return tuple(converted) if (origin or kind) is tuple else converted
    if kind is Path:
        return Path(text)
    if (origin or kind) is dict and not isinstance(value, dict):
        raise ValueError("it is no dict, such as {'lr': 0.1}")
    return value


def _as_one_of(kinds: Sequence[Any], text: Any) -> Any:
    # None first: for text it would be a word like any other.
    for kind in sorted(kinds, key=lambda kind: kind is not type(None)):
        try:
            return _as(kind, text)
        except (ValueError, TypeError):
            continue
    raise ValueError(f"it is none of {', '.join(getattr(kind, '__name__', '?') for kind in kinds)}")


def _kinds(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError):
        # Annotations that only a type checker can read: the defaults must do.
        hints = {}
    return {name: kind for name, kind in hints.items() if kind is not Any}


def _help(function: Callable[..., Any]) -> str:
    lines = [f"usage: {_program()} [--option=value ...]", ""]
    if text := inspect.getdoc(function):
        lines += [text, ""]
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            lines.append("  and any other --option=value")
        elif parameter.default is _EMPTY:
            lines.append(f"  --{name}  (must be given)")
        else:
            lines.append(f"  --{name}={parameter.default}")
    return "\n".join(lines)


def _names(flags: dict[str, Any]) -> str:
    return ", ".join(f"--{name}" for name in flags)


def _program() -> str:
    return Path(sys.argv[0]).name


def _refuse(text: str) -> NoReturn:
    print(f"{_program()}: {text}", file=sys.stderr)
    raise SystemExit(2)
