"""The profiles of clusters that runyard knows, and which one is this machine's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runyard.clusters.load import load_profile, profile_folders, profile_names
from runyard.clusters.place import Recognised, recognise, this_place
from runyard.clusters.profile import Profile
from runyard.errors import ConfigError
from runyard.reading.kinds import Memory, Span
from runyard.reading.records import kind_of_setting, settings_of
from runyard.reading.units import short_memory, short_time


@dataclass(frozen=True)
class ProfileList:
    """`broken`: the names of those that cannot be read, with why."""

    profiles: list[Profile]
    broken: list[tuple[str, ConfigError]]
    here: Recognised

    def to_json(self) -> list[dict[str, Any]]:
        return [
            {"name": profile.name, "title": profile.identity.title,
             "here": profile.name == self.here.name, "gpus": list(profile.gpus.types),
             "internet": profile.network.internet, "longest": profile.limits.longest,
             "checked": profile.identity.checked, "retired": profile.identity.retired,
             "file": profile.files[-1]}
            for profile in self.profiles
        ] + [{"name": name, "error": error.to_json()} for name, error in self.broken]  # fmt: skip


def list_profiles() -> ProfileList:
    profiles, broken = [], []
    for name in profile_names(profile_folders()):
        try:
            profiles.append(load_profile(name))
        except ConfigError as error:
            broken.append((name, error))
    try:
        here = recognise(this_place())
    except ConfigError:  # It is among the broken ones.
        here = Recognised("unknown", "not all profiles can be read")
    return ProfileList(profiles, broken, here)


def section_lines(record: Any, depth: int = 1) -> list[str]:
    """What a section says, without what it leaves open, as its file would write it."""
    lines, indent = [], "  " * depth
    for name, field in settings_of(type(record)).items():
        value = getattr(record, name)
        if value is None or value in ((), {}):
            continue
        if isinstance(value, Mapping):
            lines.append(f"{indent}{name}:")
            for key, entry in value.items():
                lines.append(f"{indent}  {key}: {_entry(entry)}")
        elif isinstance(value, tuple) and any(len(str(item)) > 24 for item in value):
            lines.append(f"{indent}{name}:")
            lines += [f"{indent}  - {item}" for item in value]
        else:
            lines.append(f"{indent}{name}: {_value(kind_of_setting(field), value)}")
    return lines


def _entry(value: Any) -> str:
    if hasattr(value, "__dataclass_fields__"):
        parts = [
            f"{name}: {_value(kind_of_setting(field), getattr(value, name))}"
            for name, field in settings_of(type(value)).items()
            if getattr(value, name) != field.default
        ]
        return f"{{{', '.join(parts)}}}"
    return _value(None, value)


def _value(kind: Any, value: Any) -> str:
    if isinstance(kind, Span):
        return short_time(value)
    if isinstance(kind, Memory):
        return short_memory(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return f"[{', '.join(str(item) for item in value)}]"
    return f"{value:g}" if isinstance(value, float) else str(value)
