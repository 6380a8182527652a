"""What a project needs, read from the files in which Python projects say it, for `pip install -r`.

A lock is taken as it stands. Where the site has its own wheels the exact versions may not be among
them: then what the project asks for counts, without the versions of the lock.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from runyard.errors import ConfigError


def from_pipfile_lock(text: str, file: str) -> str:
    """The packages of a Pipfile.lock, in their versions."""
    try:
        packages = json.loads(text)["default"]
        lines = [_locked(name, package) for name, package in packages.items()]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{file} cannot be read", said=error, mend="`pipenv lock` writes it anew"
        ) from error
    return "\n".join(lines) + "\n"


def from_pipfile(text: str, file: str) -> str:
    """The packages that a Pipfile asks for."""
    packages = _toml(text, file).get("packages", {})
    return "\n".join(_asked(name, package) for name, package in packages.items()) + "\n"


def from_pyproject(text: str, file: str) -> str:
    """The dependencies of a pyproject.toml; the project itself runs from its own folder."""
    content = _toml(text, file)
    dependencies = content.get("project", {}).get("dependencies")
    if not isinstance(dependencies, list):
        raise ConfigError(
            f"{file} has no [project] dependencies",
            mend="list them there, or write a requirements.txt",
        )
    return "\n".join(map(str, dependencies)) + "\n"


def _locked(name: str, package: Mapping[str, Any]) -> str:
    if "version" not in package:
        return _asked(name, package)
    return f"{name}{_extras(package)}{package['version']}{_markers(package)}"


def _asked(name: str, package: Any) -> str:
    """Pipfile's words for a package as pip's."""
    if isinstance(package, str):
        return name if package == "*" else f"{name}{package}"
    extras, markers = _extras(package), _markers(package)
    if "git" in package:
        reference = f"@{package['ref']}" if "ref" in package else ""
        return f"{name}{extras} @ git+{package['git']}{reference}{markers}"
    for source in ("file", "path"):
        if source in package:
            return f"{name}{extras} @ {package[source]}{markers}"
    version = package.get("version", "*")
    return f"{name}{extras}{'' if version == '*' else version}{markers}"


def _extras(package: Mapping[str, Any]) -> str:
    return f"[{','.join(package['extras'])}]" if package.get("extras") else ""


def _markers(package: Mapping[str, Any]) -> str:
    return f" ; {package['markers']}" if package.get("markers") else ""


def _toml(text: str, file: str) -> dict[str, Any]:
    # The same library, which the standard one has since 3.11.
    loads = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads
    try:
        content: dict[str, Any] = loads(text)
        return content
    except ValueError as error:
        raise ConfigError(f"{file} is no valid TOML", said=error, mend="correct it") from error
