"""Settings of runyard.yaml that are given beside the file, for one request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field
from typing import Any

from runyard.reading.kinds import Items, Table
from runyard.reading.records import Section, kind_of_setting, settings_of


@dataclass(frozen=True)
class FlagValue:
    """What a command line says: the value, and the option as it was written."""

    value: Any
    option: str


@dataclass(frozen=True)
class Flags:
    """The settings that a command line gives, by their path in runyard.yaml."""

    given: Mapping[str, FlagValue] = field(default_factory=dict)

    def __getitem__(self, path: str) -> Any:
        return self.given[path].value if path in self.given else None


NO_FLAGS = Flags()


def flag_fields() -> Iterator[tuple[str, Field[Any]]]:
    """Every setting that has an option, with its path."""
    from runyard.config.project_shape import ProjectFile  # Most of the start of a command.

    def walk(record: type[Any], above: str) -> Iterator[tuple[str, Field[Any]]]:
        for name, setting in settings_of(record).items():
            kind = kind_of_setting(setting)
            if isinstance(kind, Section) and name != "profile":
                yield from walk(kind.record, f"{above}{name}.")
            elif setting.metadata.get("flags"):
                yield f"{above}{name}", setting

    return walk(ProjectFile, "")


def flag(path: str, entries: Sequence[Any]) -> FlagValue:
    """What is given for a setting, once or several times, with its option as people write it.

    An entry is a value, or a `FlagValue` with the text that stood for it.
    """
    setting = dict(flag_fields())[path]
    kind = kind_of_setting(setting)
    option = next(word for word in setting.metadata["flags"] if word.startswith("--"))
    words = " ".join(
        entry.option if isinstance(entry, FlagValue) else "" if entry is True else str(entry)
        for entry in entries
    )
    values = [entry.value if isinstance(entry, FlagValue) else entry for entry in entries]
    value = values[-1]
    if isinstance(kind, Items):
        value = tuple(values)
    elif isinstance(kind, Table):
        value = {name: text for entry in values for name, text in entry.items()}
    return FlagValue(value, f"{option} {words}".strip())
