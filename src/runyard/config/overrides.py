"""What a command line changes in a sweep file: `--run-cap 20`, `--set parameters.lr.max=0.1`."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runyard.errors import UsageError
from runyard.reading.documents import DocumentError, read_document
from runyard.reading.problems import Path
from runyard.search.command import TYPED
from runyard.search.parameters import GROUP
from runyard.search.sweep import KEYS, WANDB_METHODS


@dataclass(frozen=True)
class Overrides:
    """The options of a command; None: not given. `sets` are `path=value` texts."""

    name: str | None = None
    project: str | None = None
    entity: str | None = None
    run_cap: int | None = None
    method: str | None = None
    program: str | None = None
    seed: int | None = None
    warm: tuple[str, ...] | None = None
    budget: str | None = None
    sets: tuple[str, ...] = ()


def apply(data: Any, overrides: Overrides) -> tuple[Any, dict[Path, str]]:
    """The data with the overrides in it, and for each changed place the option that did it."""
    if not isinstance(data, Mapping):
        return data, {}
    data = copy.deepcopy(dict(data))
    origins: dict[Path, str] = {}
    for path, value, option in _plain_changes(data, overrides):
        _put(data, path, value)
        origins[path] = option
    for text in overrides.sets:
        path, value = _parse(data, text)
        try:
            _put(data, path, value)
        except (IndexError, TypeError, ValueError):
            raise UsageError(
                f"--set {text}: there is a list on the way", mend="count its items from 0"
            ) from None
        origins[path] = f"--set {text}"
    return data, origins


def _plain_changes(data: dict[str, Any], overrides: Overrides) -> Iterable[tuple[Path, Any, str]]:
    for key in ("name", "project", "entity", "run_cap", "program"):
        value = getattr(overrides, key)
        if value is not None:
            yield (key,), value, f"--{key.replace('_', '-')} {value}"
    if overrides.seed is not None:
        yield ("runyard", "seed"), overrides.seed, f"--seed {overrides.seed}"
    if overrides.warm is not None:
        yield ("runyard", "warm"), list(overrides.warm), f"--warm {','.join(overrides.warm)}"
    if overrides.budget is not None:
        yield ("runyard", "budget"), overrides.budget, f"--budget {overrides.budget}"
    if overrides.method in WANDB_METHODS:
        if isinstance(data.get("runyard"), dict):
            data["runyard"].pop("method", None)
        yield ("method",), overrides.method, f"--method {overrides.method}"
    elif overrides.method is not None:
        yield ("runyard", "method"), overrides.method, f"--method {overrides.method}"


def _parse(data: dict[str, Any], text: str) -> tuple[Path, Any]:
    words, equals, written = text.partition("=")
    if not equals or not words.strip():
        raise UsageError(
            f"--set {text} says nothing to set",
            mend="write --set PATH=VALUE, such as --set parameters.lr.max=0.1",
        )
    path = _find(data, words.strip().split("."))
    try:
        value = read_document(written, typed=((),) if path[:1] in TYPED else ()).data
    except DocumentError as error:
        raise UsageError(
            f"--set {text}: the value cannot be read",
            said=error.message,
            mend="quote it for the shell, and write it as in the file",
        ) from None
    if path[0] not in KEYS:  # the name of a parameter that the file does not have
        path = (GROUP, words.strip())
    # A bare value pins a parameter, a bare list is what it is chosen from.
    if len(path) > 1 and path[-2] == GROUP and not isinstance(value, Mapping):
        value = {"values": value} if isinstance(value, list) else {"value": value}
    return path, value


def _find(data: Any, words: list[str]) -> Path:
    """The path that dotted words mean. Names may hold dots themselves, and the `parameters` of a
    group may be left out: opt.lr is opt, parameters, lr."""
    if not words:
        return ()
    if isinstance(data, Mapping):
        for count in range(len(words), 0, -1):
            key = ".".join(words[:count])
            if key in data:
                return (key, *_find(data[key], words[count:]))
        if isinstance(data.get(GROUP), Mapping) and words[0] in data[GROUP]:
            return (GROUP, *_find(data[GROUP], words))
    if isinstance(data, list) and words[0].isdigit() and int(words[0]) < len(data):
        return (int(words[0]), *_find(data[int(words[0])], words[1:]))
    return tuple(words)


def _put(data: Any, path: Path, value: Any) -> None:
    for step in path[:-1]:
        if isinstance(data, list):
            data = data[int(step)]
        else:
            if not isinstance(data.get(step), dict | list):
                data[step] = {}
            data = data[step]
    data[path[-1]] = value
