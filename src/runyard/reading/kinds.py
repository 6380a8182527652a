"""The kinds of values in files and on command lines.

Each kind reads a value of a document, parses a word of a command line, and describes itself to
editors, so a setting is the same wherever it is written. For a wrong value it raises `Unfit`: what
the value is, and what to write instead.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from runyard.reading.problems import choose, kind_of, listed, show
from runyard.reading.units import MEMORY_FORMS, TIME_FORMS, read_mebibytes, read_seconds

Schema = dict[str, Any]


class Unfit(Exception):
    """A value is not of its kind. `step` leads to the wrong part of a list or mapping."""

    def __init__(self, wanted: str, mend: str, step: tuple[str | int, ...] = ()) -> None:
        super().__init__(wanted)
        self.wanted = wanted
        self.mend = mend
        self.step = step


class Kind:
    """The values that one setting can have."""

    metavar = "VALUE"
    is_list = False

    def read(self, value: Any) -> Any:
        """The value as the program uses it; raises Unfit."""
        raise NotImplementedError

    def parse(self, text: str) -> Any:
        """The same from one word of a command line."""
        return self.read(text)

    def schema(self) -> Schema:
        """The same for editors: JSON Schema."""
        raise NotImplementedError


class Text(Kind):
    """Some text."""

    def __init__(self, metavar: str = "TEXT") -> None:
        self.metavar = metavar

    def read(self, value: Any) -> str:
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, str):
            raise Unfit("text is wanted", "write something there, or remove the key")
        raise Unfit("text is wanted", f"write '{show(value)}' in quotes, if you mean it")

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1}


class Word(Kind):
    """One of several words. `also` maps other spellings to them."""

    def __init__(self, *words: str, also: Mapping[str, str] | None = None) -> None:
        self.words = words
        self.also = dict(also or {})
        self.metavar = "WORD"

    def read(self, value: Any) -> str:
        if isinstance(value, bool):  # YAML reads yes, no, on and off as booleans.
            spoken = ("yes", "on", "true") if value else ("no", "off", "false")
            value = next((word for word in spoken if word in self.words), value)
        word = self.also.get(value, value) if isinstance(value, str) else value
        if isinstance(word, str) and word in self.words:
            return word
        raise Unfit(f"it can be {listed(self.words)}", choose(value, self.words))

    def schema(self) -> Schema:
        spoken = [True] if "yes" in self.words else []
        silent = [False] if "no" in self.words else []
        return {"enum": [*self.words, *self.also, *spoken, *silent]}


class Flag(Kind):
    """True or false."""

    metavar = "yes|no"

    def read(self, value: Any) -> bool:
        if isinstance(value, bool):
            return value
        raise Unfit("true or false is wanted", "write true or false, without quotes")

    def parse(self, text: str) -> bool:
        known = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
        if text.lower() in known:
            return known[text.lower()]
        raise Unfit("yes or no is wanted", "write yes or no")

    def schema(self) -> Schema:
        return {"type": "boolean"}


class Whole(Kind):
    """A whole number, `least` or more; `words` are allowed instead of it."""

    metavar = "N"

    def __init__(
        self, least: int = 0, words: Sequence[str] = (), *, can_be_left_out: bool = False
    ) -> None:
        self.least = least
        self.words = tuple(words)
        self.can_be_left_out = can_be_left_out

    def read(self, value: Any) -> int | str:
        if isinstance(value, str) and value in self.words:
            return value
        if isinstance(value, bool) or not isinstance(value, int):
            raise Unfit("a whole number is wanted", self._mend(value))
        if value < self.least:
            mend = f"write {self.least} or more{', or remove it' if self.can_be_left_out else ''}"
            raise Unfit(f"it must be at least {self.least}", mend)
        return value

    def parse(self, text: str) -> int | str:
        return self.read(int(text) if text.isdecimal() else text)

    def schema(self) -> Schema:
        whole: Schema = {"type": "integer", "minimum": self.least}
        return {"anyOf": [whole, {"enum": list(self.words)}]} if self.words else whole

    def _mend(self, value: Any) -> str:
        if isinstance(value, float) and value.is_integer():
            return f"write {int(value)}"
        if isinstance(value, str) and value.strip().isdecimal():
            return f"write {value.strip()} without quotes"
        return f"write a whole number{f', or {listed(self.words)}' if self.words else ''}"


class Number(Kind):
    """A number that is not negative, with or without a fraction."""

    metavar = "X"

    def read(self, value: Any) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            # A whole number may have more digits than a float can hold.
            number = float(value) if abs(value) <= sys.float_info.max else math.inf
            if 0 <= number < math.inf:
                return number
            if number < 0:
                raise Unfit("it must not be negative", "write 0 or more")
        raise Unfit("a number is wanted", "write a number")

    def parse(self, text: str) -> float:
        try:
            return self.read(float(text))
        except ValueError:
            raise Unfit("a number is wanted", "write a number") from None

    def schema(self) -> Schema:
        return {"type": "number", "minimum": 0}


class Span(Kind):
    """A length of time, in seconds."""

    metavar = "TIME"

    def read(self, value: Any) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            # A bare 60 means minutes for Slurm, and seconds for others.
            shown = f"{value:g}"
            raise Unfit("a length of time says its unit", f"write {shown}s, {shown}m or {shown}h")
        seconds = read_seconds(value) if isinstance(value, str) and not value.isdecimal() else None
        if seconds is None:
            raise Unfit("a length of time is wanted", f"write it as {TIME_FORMS}")
        return seconds

    def parse(self, text: str) -> float:
        return self.read(int(text) if text.isdecimal() else text)

    def schema(self) -> Schema:
        clock = r"(\d+-)?\d+:\d+(:\d+)?"
        return {"type": "string", "pattern": rf"^({clock}|\d+-\d+|(\d+(\.\d*)?[smhd])+)$"}


class Memory(Kind):
    """An amount of memory, in MiB."""

    metavar = "SIZE"

    def read(self, value: Any) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            if value == 0:
                return 0
            raise Unfit("an amount of memory says its unit", f"write {value}G or {value}M")
        mebibytes = read_mebibytes(value) if isinstance(value, str) else None
        if mebibytes is None:
            raise Unfit("an amount of memory is wanted", f"write it as {MEMORY_FORMS}")
        return mebibytes

    def parse(self, text: str) -> int:
        return self.read(int(text) if text.isdecimal() else text)

    def schema(self) -> Schema:
        pattern = r"^\d+(\.\d+)?\s*[MGTmgt]([iI]?[bB])?$"
        return {"anyOf": [{"type": "string", "pattern": pattern}, {"const": 0}]}


class Items(Kind):
    """A list of one kind. A single value needs no brackets."""

    is_list = True

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.metavar = kind.metavar

    def read(self, value: Any) -> tuple[Any, ...]:
        if isinstance(value, Mapping):
            raise Unfit("a list is wanted", "write a dash before each item")
        if not isinstance(value, list | tuple):
            return (self.kind.read(value),)
        return tuple(self._read_item(place, item) for place, item in enumerate(value))

    def parse(self, text: str) -> Any:
        return self.kind.parse(text)  # One word of several.

    def schema(self) -> Schema:
        item = self.kind.schema()
        return {"anyOf": [{"type": "array", "items": item}, item]}

    def _read_item(self, place: int, item: Any) -> Any:
        try:
            return self.kind.read(item)
        except Unfit as error:
            wanted = f"item {place + 1} is {kind_of(item)}; {error.wanted}"
            raise Unfit(wanted, error.mend, (place, *error.step)) from None


class Table(Kind):
    """Names, each with a value of one kind."""

    metavar = "NAME=VALUE"

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def read(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise Unfit("a mapping is wanted", "write NAME: VALUE, a line each")
        return {str(name): self._read_entry(name, entry) for name, entry in value.items()}

    def parse(self, text: str) -> dict[str, Any]:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise Unfit("a name and a value are wanted", "write NAME=VALUE")
        return {name: self.kind.parse(value)}

    def schema(self) -> Schema:
        return {"type": "object", "additionalProperties": self.kind.schema()}

    def _read_entry(self, name: Any, value: Any) -> Any:
        try:
            return self.kind.read(value)
        except Unfit as error:
            wanted = f"{name} is {kind_of(value)}; {error.wanted}"
            raise Unfit(wanted, error.mend, (name, *error.step)) from None


class Variables(Table):
    """Names of variables with their values."""

    def __init__(self) -> None:
        super().__init__(VariableText())


class VariableText(Kind):
    """The value of a variable: text, or a whole number, which needs no quotes."""

    metavar = "VALUE"

    def read(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        raise Unfit("text is wanted", f"write '{show(value)}' in quotes, as the program reads it")

    def schema(self) -> Schema:
        return {"type": ["string", "integer"]}
