"""Settings of runyard.yaml that are given beside the file, for one request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field
from typing import Any

from runyard.config.project_shape import ProjectFile
from runyard.reading.records import Section, kind_of_setting, settings_of


@dataclass(frozen=True)
class Given:
    """What a command line says: the value, and the option as it was written."""

    value: Any
    option: str


@dataclass(frozen=True)
class Flags:
    """The settings that a command line gives, by their path in runyard.yaml."""

    given: Mapping[str, Given] = field(default_factory=dict)

    def __getitem__(self, path: str) -> Any:
        return self.given[path].value if path in self.given else None


NO_FLAGS = Flags()


def flag_fields() -> Iterator[tuple[str, Field[Any]]]:
    """Every setting that has an option, with its path."""

    def walk(record: type[Any], above: str) -> Iterator[tuple[str, Field[Any]]]:
        for name, one in settings_of(record).items():
            kind = kind_of_setting(one)
            if isinstance(kind, Section) and name != "profile":
                yield from walk(kind.record, f"{above}{name}.")
            elif one.metadata.get("flags"):
                yield f"{above}{name}", one

    return walk(ProjectFile, "")
