"""What a key for runs may not bring into a sweep: a word that its file does not have.

Agents put names and values into the words of a command, or into a shell's line. Numbers do no harm
there; a text that none of the sweep's owners wrote could run anything. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from runyard.search.distributions import Categorical
from runyard.search.space import Space


def strange_in_settings(settings: Mapping[str, Any], space: Space) -> str | None:
    """The first name or text of a trial's settings that the parameter does not have."""
    return _strange({name: set(_texts(value)) for name, value in settings.items()}, space)


def strange_in_space(new: Space, space: Space) -> str | None:
    """The first name or text that a changed file would add."""
    return _strange(_words(new), space)


def _strange(words: Mapping[str, set[str]], space: Space) -> str | None:
    known = _words(space)
    for name, texts in words.items():
        if name not in known:
            return name
        for text in sorted(texts - known[name]):
            return text
    return None


def _words(space: Space) -> dict[str, set[str]]:
    """By parameter: the names within it, and the texts among its values."""
    words: dict[str, set[str]] = {}
    for leaf in space.leaves:
        mine = words.setdefault(leaf.path[0], set())
        mine.update(leaf.path[1:])
        if isinstance(leaf.distribution, Categorical):
            mine.update(_texts(leaf.distribution.values))
    for constant in space.constants:
        words.setdefault(constant.path[0], set()).update(constant.path[1:])
        words[constant.path[0]].update(_texts(constant.value))
    return words


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield str(name)
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
