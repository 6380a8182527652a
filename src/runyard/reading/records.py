"""Frozen dataclasses as the description of a file: each field says its kind and its meaning.

    @dataclass(frozen=True)
    class Resources:
        gpus: int | None = setting(Whole(), "GPUs an agent gets")

The same field metadata reads the file, makes the options of a command line and the JSON Schema for
editors, and is what the documentation lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, field, fields
from importlib import import_module
from typing import Any, TypeVar

from runyard.reading.fields import Fields
from runyard.reading.kinds import Items, Kind, Schema, Table, Unfit
from runyard.reading.problems import Findings, Path, kind_of

Record = TypeVar("Record")
_KIND, _HELP = "kind", "help"


def setting(kind: Kind, help: str, default: Any = None, **more: Any) -> Any:
    """A field of a record. `more` is for those who read the metadata: flags, probes."""
    metadata = {_KIND: kind, _HELP: help, **more}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def section(record: type[Any] | str, help: str, **more: Any) -> Any:
    """A field that is a record itself, or the place of one (`module:Name`) to be loaded when it is
    needed."""
    kind = Section(record)
    metadata = {_KIND: kind, _HELP: help, **more}
    return field(default_factory=lambda: kind.record(), metadata=metadata)


def settings_of(record: type[Any]) -> dict[str, Field[Any]]:
    """The fields that a file can set, by name."""
    return {one.name: one for one in fields(record) if _KIND in one.metadata}


def kind_of_setting(one: Field[Any]) -> Kind:
    kind: Kind = one.metadata[_KIND]
    return kind


def help_of(one: Field[Any]) -> str:
    return str(one.metadata[_HELP])


class Section(Kind):
    """A mapping with the fields of a record."""

    def __init__(self, record: type[Any] | str) -> None:
        self._record = record

    @property
    def record(self) -> type[Any]:
        if isinstance(self._record, str):
            module, _, name = self._record.partition(":")
            found: type[Any] = getattr(import_module(module), name)
            self._record = found
            return found
        return self._record

    def read(self, value: Any) -> Any:
        """For records inside of tables; at the top `read_record` finds every problem at once."""
        if not isinstance(value, Mapping):
            raise Unfit("a mapping is wanted", f"write {', '.join(settings_of(self.record))}")
        findings = Findings()
        made = read_record(self.record, Fields(value, (), findings))
        for problem in findings:
            raise Unfit(problem.message, problem.mend, problem.path)
        return made

    def schema(self) -> Schema:
        return {"$ref": f"#/definitions/{self.record.__name__}"}


def read_record(record: type[Record], given: Fields) -> Record:
    """The record that a mapping describes. What is wrong goes to the findings; what is left empty
    counts as not written, and so does what is wrong."""
    known = settings_of(record)
    given.allow(known)
    values = {}
    for name, one in known.items():
        value = given.data.get(name)
        if value is None:
            continue
        kind = kind_of_setting(one)
        if isinstance(kind, Section) and isinstance(value, Mapping):
            values[name] = read_record(kind.record, Fields(value, given.at(name), given.findings))
            continue
        try:
            values[name] = kind.read(without_empty(value))
        except Unfit as error:
            _tell(given.findings, given.at(name), name, value, error)
    return record(**values)


def _tell(findings: Findings, path: Path, name: str, value: Any, error: Unfit) -> None:
    if error.step:
        findings.error((*path, *error.step), f"{name}: {error.wanted}", error.mend)
    else:
        findings.error(path, f"{name} is {kind_of(value)}; {error.wanted}", error.mend)


def without_empty(value: Any) -> Any:
    """The same without keys that are left empty: in a file that inherits, they take away."""
    if isinstance(value, Mapping):
        return {key: without_empty(one) for key, one in value.items() if one is not None}
    return value


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """One document over another: mappings are merged, all else is replaced."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        is_deep = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = merge(old, value) if is_deep else value  # type: ignore[arg-type]
    return merged


def record_schema(record: type[Any]) -> Schema:
    """JSON Schema of a record, with its help texts; records inside of it stand in `definitions`."""
    definitions: Schema = {}
    whole = _properties(record, definitions)
    return {**whole, "definitions": definitions}


def _properties(record: type[Any], definitions: Schema) -> Schema:
    properties = {}
    for name, one in settings_of(record).items():
        kind = kind_of_setting(one)
        _define(kind, definitions)
        # Left empty, a key counts as not written.
        properties[name] = {"description": help_of(one), "anyOf": [kind.schema(), {"type": "null"}]}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _define(kind: Kind, definitions: Schema) -> None:
    inner = kind.kind if isinstance(kind, Items | Table) else kind
    if isinstance(inner, Section) and inner.record.__name__ not in definitions:
        definitions[inner.record.__name__] = {}  # It may hold itself.
        definitions[inner.record.__name__] = _properties(inner.record, definitions)
