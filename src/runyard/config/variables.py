"""Variables in runyard.yaml: which are filled in where the file is read, and which on the node.

`command`, `environment.variables` and `environment.before` are for the node: what stands in them is
left as it is, so `${TMPDIR}` is the node's. Everywhere else `${NAME}` is a variable of the shell
that submits, `~` at the beginning is the home folder, and a variable that is not set is
an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from runyard.config.project_shape import ClusterFile
from runyard.errors import ConfigError
from runyard.reading.records import settings_of
from runyard.reading.variables import UnsetVariable, expand

_ON_THE_NODE = ("environment.variables", "environment.before")
_SECTIONS = ("resources", "environment", "agents", "staging", "tracking", "checkpoints")


def fill_in(
    read: ClusterFile, origins: Mapping[str, str], environ: Mapping[str, str]
) -> ClusterFile:
    """The same with variables filled in."""
    for section in _SECTIONS:
        record = getattr(read, section)
        for name in settings_of(type(record)):
            path = f"{section}.{name}"
            value = getattr(record, name)
            if path in _ON_THE_NODE or not value:
                continue
            record = replace(record, **{name: _filled(value, origins.get(path, path), environ)})
        read = replace(read, **{section: record})
    for name in ("name", "command_file", "sweep", "sweep_id"):
        value = getattr(read, name)
        if value:
            read = replace(read, **{name: _filled(value, origins.get(name, name), environ)})
    return read


def _filled(value: Any, origin: str, environ: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        try:
            return expand(value, environ)
        except UnsetVariable as error:
            raise ConfigError(
                f"{origin}: ${{{error.name}}} is not set in this shell",
                mend=f"export {error.name}=…, or write the value itself",
            ) from None
    if isinstance(value, tuple):
        return tuple(_filled(item, origin, environ) for item in value)
    return value
