"""Frozen dataclasses as the description of a file: each field says its kind and its meaning.

    @dataclass(frozen=True)
    class Resources:
        gpus: int | None = setting(Whole(), "GPUs an agent gets")

From the same field metadata come the reading of the file, the options of a command line, the JSON
Schema for editors, and the tables of the documentation.
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
    """A field of a record. `more` is additional metadata: flags, probes."""
    metadata = {_KIND: kind, _HELP: help, **more}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def section(record: type[Any] | str, help: str, **more: Any) -> Any:
    """A field that is a record itself, or the name of one (`module:Name`) that is loaded on first
    use."""
    kind = Section(record)
    metadata = {_KIND: kind, _HELP: help, **more}
    return field(default_factory=lambda: kind.record(), metadata=metadata)


def settings_of(record: type[Any]) -> dict[str, Field[Any]]:
    """The fields that a file can set, by name."""
    return {field.name: field for field in fields(record) if _KIND in field.metadata}


def kind_of_setting(setting_field: Field[Any]) -> Kind:
    kind: Kind = setting_field.metadata[_KIND]
    return kind


def help_of(setting_field: Field[Any]) -> str:
    return str(setting_field.metadata[_HELP])


class Section(Kind):
    """A mapping with the fields of a record."""

    def __init__(self, record: type[Any] | str) -> None:
        self._record = record

    @property
    def record(self) -> type[Any]:
        if isinstance(self._record, str):
            module, _, name = self._record.partition(":")
            record: type[Any] = getattr(import_module(module), name)
            self._record = record
            return record
        return self._record

    def read(self, value: Any) -> Any:
        """For records inside of tables. At the top, `read_record` finds every problem at once."""
        if not isinstance(value, Mapping):
            raise Unfit("a mapping is wanted", f"write {', '.join(settings_of(self.record))}")
        findings = Findings()
        made = read_record(self.record, Fields(value, (), findings))
        for problem in findings:
            raise Unfit(problem.message, problem.mend, problem.path)
        return made

    def schema(self) -> Schema:
        return {"$ref": f"#/definitions/{self.record.__name__}"}


def read_record(record: type[Record], source: Fields) -> Record:
    """The record that a mapping describes. Problems go to the findings. An empty or wrong value
    counts as not written."""
    known = settings_of(record)
    source.allow(known)
    values = {}
    for name, setting_field in known.items():
        value = source.data.get(name)
        if value is None:
            continue
        kind = kind_of_setting(setting_field)
        if isinstance(kind, Section) and isinstance(value, Mapping):
            values[name] = read_record(kind.record, Fields(value, source.at(name), source.findings))
            continue
        try:
            values[name] = kind.read(without_empty(value))
        except Unfit as error:
            _tell(source.findings, source.at(name), name, value, error)
    return record(**values)


def _tell(findings: Findings, path: Path, name: str, value: Any, error: Unfit) -> None:
    if error.step:
        findings.error((*path, *error.step), f"{name}: {error.wanted}", error.mend)
    else:
        findings.error(path, f"{name} is {kind_of(value)}; {error.wanted}", error.mend)


def without_empty(value: Any) -> Any:
    """The same without empty keys: in a file that inherits, an empty key removes a value."""
    if isinstance(value, Mapping):
        return {key: without_empty(item) for key, item in value.items() if item is not None}
    return value


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """One document over another: mappings are merged, everything else is replaced."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        is_deep = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = merge(old, value) if is_deep else value  # type: ignore[arg-type]
    return merged


def record_schema(record: type[Any]) -> Schema:
    """JSON Schema of a record, with its help texts; records inside of it are in `definitions`."""
    definitions: Schema = {}
    whole = _properties(record, definitions)
    return {**whole, "definitions": definitions}


def _properties(record: type[Any], definitions: Schema) -> Schema:
    properties = {}
    for name, setting in settings_of(record).items():
        kind = kind_of_setting(setting)
        _define(kind, definitions)
        # An empty key counts as not written.
        properties[name] = {
            "description": help_of(setting),
            "anyOf": [kind.schema(), {"type": "null"}],
        }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _define(kind: Kind, definitions: Schema) -> None:
    inner = kind.kind if isinstance(kind, Items | Table) else kind
    if isinstance(inner, Section) and inner.record.__name__ not in definitions:
        definitions[inner.record.__name__] = {}  # A record may contain itself.
        definitions[inner.record.__name__] = _properties(inner.record, definitions)
