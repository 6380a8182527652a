"""Settings written into the text of runyard.yaml; all else, comments included, stays as it is.

Only the characters of a value are replaced, or a line is added to its section. What comes out is
read again: where it does not say what it should, nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from runyard.config.project_text import FILE_NAME, find_project_file
from runyard.errors import ConfigError
from runyard.home import write_whole

Settings = Mapping[tuple[str, str], str]
"""(section, key) → the value as it is to stand in the file."""


def write_settings(folder: Path, settings: Settings) -> Path:
    """Put them into the project's file; into a new one where there is none."""
    path = find_project_file(folder) or folder / FILE_NAME
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        write_whole(path, changed_text(text, settings, str(path)))
    except OSError as error:
        raise ConfigError(f"{path} cannot be written", said=error.strerror) from error
    return path


def changed_text(text: str, settings: Settings, source: str = FILE_NAME) -> str:
    """The text with these settings in it."""
    for (section, key), value in settings.items():
        text = _with_one(text, section, key, value)
    data = yaml.safe_load(text) or {}
    for (section, key), value in settings.items():
        if (data.get(section) or {}).get(key) != yaml.safe_load(value):
            lines = [f"{section}: {{{key}: {value}}}" for (section, key), value in settings.items()]
            raise ConfigError(
                f"{source} is written in a way in which its {section} cannot be changed safely",
                said="\n  ".join(["", *lines]),
                mend="write these settings into it by hand; nothing was changed",
            )
    return text


def _with_one(text: str, section: str, key: str, value: str) -> str:
    whole = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(whole, yaml.MappingNode):
        gap = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{gap}{section}:\n  {key}: {value}\n"
    entry = _entry(whole, section)
    if entry is None:
        gap = "" if text.endswith("\n") else "\n"
        return f"{text}{gap}\n{section}:\n  {key}: {value}\n"
    name, inner = entry
    if isinstance(inner, yaml.MappingNode):
        return _in_mapping(text, inner, key, value)
    # A section that is named and left empty.
    end = _line_end(text, name.end_mark.index)
    return f"{text[:end]}\n{' ' * (name.start_mark.column + 2)}{key}: {value}{text[end:]}"


def _in_mapping(text: str, section: Any, key: str, value: str) -> str:
    entry = _entry(section, key)
    if entry is not None:
        name, old = entry
        begin, end = old.start_mark.index, old.end_mark.index
        if begin == end:  # Left empty.
            begin = end = name.end_mark.index + 1
            value = f" {value}"
        return text[:begin] + value + text[end:]
    if section.flow_style:
        begin = section.start_mark.index + 1
        comma = ", " if section.value else ""
        return f"{text[:begin]}{key}: {value}{comma}{text[begin:]}"
    first = section.value[0][0].start_mark
    indent = " " * first.column
    begin = first.index
    return f"{text[:begin]}{key}: {value}\n{indent}{text[begin:]}"


def _entry(mapping: Any, key: str) -> tuple[Any, Any] | None:
    return next(((name, inner) for name, inner in mapping.value if name.value == key), None)


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end
