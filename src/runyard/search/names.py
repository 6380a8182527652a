"""Names of trials from their searched values: `bs64_lr3em3`. Short, unique, usable for folders.

A name has only lower-case letters, digits, `-` and `_`, so it is safe in a shell, in a URL and on a
file system that ignores case.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

from runyard.search.values import SEPARATOR, identity

LONGEST = 80
LONGEST_WORD = 16
# Three digits distinguish most draws; the others are for draws that are still equal.
DIGITS = (3, 5, 8, 17)
# A float keeps so many decimal digits exactly.
EXACT = 15
NAMELESS = "trial"

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def trial_name(
    swept: Mapping[str, Any], taken: Callable[[str], bool], template: str | None = None
) -> str:
    """A name that is not taken. `swept` has the flat names of the searched parameters."""
    names: list[str] = []
    for digits in DIGITS:
        name = _compose(swept, digits, template)
        if name not in names:
            if not taken(name):
                return name
            names.append(name)
    return _numbered(names[0], taken)


def free_name(name: str, taken: Callable[[str], bool]) -> str:
    """The name, or the name with a number behind it if it is taken."""
    return _numbered(name, taken) if taken(name) else name


def placeholders(template: str) -> list[str]:
    """The parameters in a template."""
    return _PLACEHOLDER.findall(template)


def resolve(placeholder: str, names: Sequence[str]) -> str | None:
    """The flat name of a placeholder: the whole name, with dots between groups, or only its last
    part if that is unique."""
    if placeholder in names:
        return placeholder
    dotted = [name for name in names if name.replace(SEPARATOR, ".") == placeholder]
    last = [name for name in names if name.rsplit(SEPARATOR, 1)[-1] == placeholder]
    return next((matches[0] for matches in (dotted, last) if len(matches) == 1), None)


def abbreviate(names: Sequence[str]) -> dict[str, str]:
    """A short, distinct form of each name. It depends only on the names, not on the trial."""
    forms = {name: list(_short_forms(name)) for name in names}
    level = dict.fromkeys(names, 0)
    while True:
        short = {name: forms[name][level[name]] for name in names}
        groups: dict[str, list[str]] = {}
        for name, form in short.items():
            groups.setdefault(form, []).append(name)
        longer = [
            name
            for group in groups.values()
            if len(group) > 1
            for name in group
            if level[name] + 1 < len(forms[name])
        ]
        if not longer:
            break
        for name in longer:
            level[name] += 1
    for group in groups.values():
        for number, name in enumerate(sorted(group)[1:], start=2):
            short[name] += f"-{number}"
    return short


@lru_cache(64)
def _abbreviated(names: tuple[str, ...]) -> dict[str, str]:
    # Cached: thousands of trials of a sweep have the same names.
    return abbreviate(names)


def shorten(value: Any, digits: int = DIGITS[0]) -> str:
    """A value in a few characters: 0.003 is 3em3, 64 is 64, "resnet/50" is 50."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "none"
    if isinstance(value, int | float):
        return _short_number(value, digits)
    if isinstance(value, Mapping):
        return _short_list(list(value.values()), value, digits)
    if isinstance(value, list | tuple):
        return _short_list(value, value, digits)
    last = str(value).replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    return _letters(last)[:LONGEST_WORD].strip("-") or _digest(value)


def _compose(swept: Mapping[str, Any], digits: int, template: str | None) -> str:
    if template is not None:
        name = _fill(template, swept, digits)
    else:
        short = _abbreviated(tuple(swept))
        name = "_".join([_part(short[key], value, digits) for key, value in swept.items()])
    if len(name) > LONGEST:
        name = f"{name[: LONGEST - 9].rstrip('_-.')}_{_digest(dict(swept), 8)}"
    return name or NAMELESS


def _part(short: str, value: Any, digits: int) -> str:
    # A grid has few values, and each of its points asks for the same ones. By kind as well: 1 and
    # 1.0 and true are the same to a dictionary.
    if isinstance(value, str | int):
        return _known_part(short, value, digits, type(value).__name__)
    return _join(short, shorten(value, digits))


@lru_cache(4096)
def _known_part(short: str, value: str | int, digits: int, _kind: str) -> str:
    return _join(short, shorten(value, digits))


def _fill(template: str, swept: Mapping[str, Any], digits: int) -> str:
    def value(match: re.Match[str]) -> str:
        name = resolve(match.group(1), list(swept))
        return "" if name is None else shorten(swept[name], digits)

    plain = unicodedata.normalize("NFKD", _PLACEHOLDER.sub(value, template))
    safe = re.sub(r"[^A-Za-z0-9_.=+-]+", "-", plain.encode("ascii", "ignore").decode())
    return safe.strip("-_.=+")


def _join(name: str, value: str) -> str:
    """A dash if name and value could not be separated otherwise: opt-adam, beta1-9em1; lr3em3."""
    clear = value[:1].isdigit() and not name[-1:].isdigit()
    return f"{name}{value}" if clear else f"{name}-{value}"


def _short_forms(name: str) -> Iterator[str]:
    """Longer and longer forms: initials, then two letters per word, and so on, then with groups."""
    own = _words(name.rsplit(SEPARATOR, 1)[-1])
    whole = _words(name)
    yield _take(own, 1) if len(own) > 1 else own[0] if len(own[0]) <= 5 else own[0][:3]
    for words in (own, whole):
        for letters in (2, 3, 5, LONGEST_WORD):
            yield _take(words, letters)


def _take(words: Sequence[str], letters: int) -> str:
    return "".join(word if word.isdigit() else word[:letters] for word in words)


def _words(name: str) -> list[str]:
    """learning_rate, learningRate and learning-rate are two words; conv2 is two as well."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Za-z])(?=[0-9])", " ", name)
    words = [word for word in re.split(r"[^A-Za-z0-9]+", split.lower()) if word]
    return words or ["x"]


def _short_number(value: float, digits: int) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "minf"
    if value == 0 or (isinstance(value, int) and abs(value) < 10**6):
        return str(int(value)).replace("-", "m")
    mantissa, exponent = _figures(value, digits)
    if exponent >= 0 and len(mantissa) + exponent <= 5:
        text = mantissa + "0" * exponent
    else:
        text = f"{mantissa}e{exponent}".replace("-", "m")
    return f"m{text}" if value < 0 else text


def _figures(value: float, digits: int) -> tuple[str, int]:
    """The digits of a number without its sign, rounded, and the power of ten of the last one."""
    if digits <= EXACT and isinstance(value, float):
        figures, _, power = f"{abs(value):.{digits - 1}e}".partition("e")
        mantissa = figures.replace(".", "").rstrip("0")
        return mantissa, int(power) - len(mantissa) + 1
    # From its shortest text: 0.1 has one digit, even if more are requested.
    exact = Decimal(str(value) if isinstance(value, float) else value)
    _, all_figures, last = Decimal(f"{exact:.{digits - 1}e}").normalize().as_tuple()
    return "".join(map(str, all_figures)), int(last)


def _short_list(items: Sequence[Any], whole: Any, digits: int) -> str:
    parts = [shorten(item, digits) for item in items[:LONGEST_WORD]]
    text = "-".join(parts)
    return text if parts and len(text) <= LONGEST_WORD else _digest(whole)


def _letters(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text[: 8 * LONGEST_WORD]).encode("ascii", "ignore")
    return re.sub(r"[^a-z0-9]+", "-", plain.decode().lower()).strip("-")


def _digest(value: Any, letters: int = 6) -> str:
    return hashlib.sha256(identity(value).encode("utf-8", "replace")).hexdigest()[:letters]


def _numbered(name: str, taken: Callable[[str], bool]) -> str:
    """The first free name of name_2, name_3, …, by bisection, since all before it are taken."""
    stem = name[: LONGEST - 9].rstrip("_-.")
    low, high = 1, 2
    while taken(f"{stem}_{high}"):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if taken(f"{stem}_{middle}"):
            low = middle
        else:
            high = middle
    return f"{stem}_{high}"
