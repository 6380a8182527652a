"""What a key for runs may not bring into a sweep: words that could run something.

Agents put names and values into the words of a command, or into a shell's line. Numbers do no harm
there. A parameter of the file keeps to the texts that the file has. A scheduler with a space of its
own, and a changed file, may add parameters whose names and texts are plain words. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from runyard.search.command import MACROS
from runyard.search.distributions import Categorical
from runyard.search.space import Space
from runyard.search.sweep_shape import Sweep

# No path, no module, no option, nothing that a shell or Hydra reads as its own.
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")


def strange_in_settings(settings: Mapping[str, Any], sweep: Sweep) -> str | None:
    """The first name or text of a trial's settings that is not the sweep's."""
    return _strange({name: set(_texts(value)) for name, value in settings.items()}, sweep)


def strange_in_space(new: Space, sweep: Sweep) -> str | None:
    """The first name or text that a changed file would add."""
    return _strange(_words(new), sweep)


def _strange(words: Mapping[str, set[str]], sweep: Sweep) -> str | None:
    known = _words(sweep.space)
    command = " ".join(map(str, sweep.command or ()))
    for name, texts in words.items():
        if name in known:
            strange = texts - known[name]
        elif name in MACROS or f"${{{name}}}" in command:
            return name
        else:
            strange = {text for text in (name, *texts) if not _PLAIN.fullmatch(text)}
        for text in sorted(strange):
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
