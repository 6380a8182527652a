"""The keys of runyard.yaml and of profiles, from the records that read them: tables for the
documentation, and a JSON Schema for editors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import MISSING, Field
from typing import Any

from runyard.clusters.profile import Profile
from runyard.config.project_shape import ProjectFile
from runyard.reading.kinds import Items, Kind, Memory, Schema, Span, Table, Word
from runyard.reading.records import Section, help_of, kind_of_setting, record_schema, settings_of
from runyard.reading.units import short_memory, short_time


def project_tables() -> str:
    """A table for the keys at the top of runyard.yaml, and one for each section."""
    return "\n".join(_tables(ProjectFile, "the file", with_options=True))


def profile_tables() -> str:
    """A table for each section of a profile."""
    return "\n".join(_tables(Profile, "", with_options=False))


def with_tables(page: str, tables: str) -> str:
    """A page with its tables replaced by these."""
    return re.sub(
        r"(<!-- tables -->\n).*?(<!-- end of tables -->)",
        lambda match: f"{match[1]}{tables}\n\n{match[2]}",
        page,
        count=1,
        flags=re.DOTALL,
    )


def _tables(record: type[Any], title: str, *, with_options: bool) -> Iterator[str]:
    plain, sections = [], []
    for name, setting in settings_of(record).items():
        kind = kind_of_setting(setting)
        if isinstance(kind, Section) and name != "profile":
            sections.append((name, kind.record, help_of(setting)))
        else:
            plain.append((name, setting))
    if plain:
        yield from _table(title, None, plain, with_options)
    for name, inner, meaning in sections:
        yield from _table(f"`{name}`", meaning, list(settings_of(inner).items()), with_options)


def _table(
    title: str, meaning: str | None, rows: list[tuple[str, Field[Any]]], with_options: bool
) -> Iterator[str]:
    yield f"\n### {title}{f': {meaning}' if meaning else ''}\n"
    yield (
        "| key | what | it is | default | option |"
        if with_options
        else ("| key | what | it is | default |")
    )
    yield "| --- | --- | --- | --- | --- |" if with_options else "| --- | --- | --- | --- |"
    for name, row in rows:
        cells = [f"`{name}`", help_of(row), _kind(kind_of_setting(row)), _default(row)]
        if with_options:
            cells.append(", ".join(f"`{word}`" for word in row.metadata.get("flags", ())))
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _kind(kind: Kind) -> str:
    if isinstance(kind, Word):
        return ", ".join(f"`{word}`" for word in kind.words)
    if isinstance(kind, Items):
        return f"list: {_kind(kind.kind)}"
    if isinstance(kind, Table):
        return f"names: {_kind(kind.kind)}"
    if isinstance(kind, Section):
        return ", ".join(f"`{name}`" for name in settings_of(kind.record))
    return {
        "Text": "text", "VariableText": "text", "Flag": "`true`, `false`", "Whole": "whole number",
        "Number": "number", "Span": "time", "Memory": "memory", "CommandLine": "line or list",
    }[type(kind).__name__]  # fmt: skip


def _default(setting: Field[Any]) -> str:
    value = setting.default
    if value is MISSING or value in (None, ()):
        return ""
    kind = kind_of_setting(setting)
    if isinstance(kind, Span):
        return f"`{short_time(value)}`"
    if isinstance(kind, Memory):
        return f"`{short_memory(value)}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`[{', '.join(map(str, value))}]`"
    return f"`{value}`"


def project_schema() -> Schema:
    """runyard.yaml for editors: what can be said without asking the cluster."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "runyard.yaml",
        "description": "One experiment: its command, environment, resources and tracking.",
        **record_schema(ProjectFile),
    }
