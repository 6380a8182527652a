"""The text of a new runyard.yaml: what was found, told where from, and what else there is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from runyard.clusters.profile import Profile
from runyard.config.request import Resources
from runyard.reading.documents import read_document
from runyard.reading.records import help_of, settings_of
from runyard.reading.units import short_time

_HEAD = """\
# What this project needs to run on a cluster. `runyard submit` reads it, and so does --on slurm of
# run, sweep, farm and repeat. Each key is an option too, which wins. All keys:
# docs/runyard-file.md; `runyard clusters show` tells what this cluster wants.
"""
# What a person may want to set, and would not think of: shown as comments.
_OFFERED: dict[str, dict[str, Any]] = {
    "resources": {"gpus": 1, "gpu_type": None, "cpus": 4, "memory": "16G", "time": "1h",
                  "partition": None, "account": None, "mail": "[END, FAIL]"},
    "environment": {"kind": "venv", "modules": "[]", "variables": "{}"},
    "agents": {"count": 4, "at_once": 2, "per_gpu": "auto"},
    "staging": {"data": "[data]", "results": "[outputs]"},
    "tracking": {"entity": None, "project": None},
}  # fmt: skip


def project_draft(settings: Mapping[str, Any], reasons: Mapping[str, str], profile: Profile) -> str:
    """A file that says what is known, with the rest as comments."""
    lines = [_HEAD]
    for key in ("cluster", "name", "command", "command_file", "sweep", "sweep_id", "distributed"):
        if key in settings:
            lines.append(_line(key, settings[key], reasons.get(key), 0))
    if not {"command", "command_file", "sweep", "sweep_id"} & set(settings):
        lines.append("# command: python train.py")
    for section, offered in _OFFERED.items():
        lines.append("")
        lines += _section(section, offered, settings, reasons, profile)
    return "\n".join(lines) + "\n"


def _section(
    section: str,
    offered: Mapping[str, Any],
    settings: Mapping[str, Any],
    reasons: Mapping[str, str],
    profile: Profile,
) -> list[str]:
    known = {
        path.partition(".")[2]: value
        for path, value in settings.items()
        if path.startswith(f"{section}.")
    }
    lines = [f"{section}:" if known else f"# {section}:"]
    for name in [*offered, *(name for name in known if name not in offered)]:
        path = f"{section}.{name}"
        if name in known:
            lines.append(_line(name, known[name], reasons.get(path), 2))
            continue
        demand = profile.submission.mandatory.get(name) if section == "resources" else None
        if demand and name not in profile.submission.defaults:
            lines += [f"#   # {profile.name} wants it: {demand}", f"#   {name}:"]
        elif name in offered:
            lines.append(f"#   {name}: {_offer(section, name, offered[name], profile)}".rstrip())
    return lines


def _offer(section: str, name: str, example: Any, profile: Profile) -> str:
    if section == "resources":
        default = profile.submission.defaults.get(name)
        if name == "gpu_type":
            default = profile.gpus.default_type or next(iter(profile.gpus.types), None)
        if name == "time":
            limit = profile.limits.longest
            longest = f"    # at most {short_time(limit)}" if limit else ""
            return f"{default or example}{longest}"
        text = "" if default is None and example is None else f"{default or example}"
        return f"{text}    # {help_of(settings_of(Resources)[name])}"
    if (section, name) == ("environment", "kind"):
        return next(iter(profile.software.kinds), str(example))
    return "" if example is None else str(example)


def _line(name: str, value: Any, reason: str | None, indent: int) -> str:
    comment = f"    # from {reason}" if reason else ""
    return f"{' ' * indent}{name}: {written(value)}{comment}"


def written(value: Any) -> str:
    """A value on one line of YAML that reads back as the same."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {written(item)}' for name, item in value.items())}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(written(item) for item in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return str(value)
    plain = re.fullmatch(r"[\w./~$@%+-][\w./~$@%+= -]*", value) and not value.endswith(" ")
    if plain and _reads_back(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _reads_back(text: str) -> bool:
    try:
        return bool(read_document(text, clocks=True).data == text)
    except Exception:
        return False
