"""The folder of a Grid Engine cell, which every machine of the cluster shares."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

# Debian's commands work without SGE_ROOT in the shell: a wrapper reads this file.
_DEBIAN_SETTINGS, _DEBIAN_ROOT = Path("/etc/default/gridengine"), "/var/lib/gridengine"


def common_folder(environ: Mapping[str, str]) -> Path:
    """Configuration and accounting of the cell that these variables lead to."""
    settings = _read(_DEBIAN_SETTINGS)
    root = environ.get("SGE_ROOT") or _assigned("SGE_ROOT", settings) or _DEBIAN_ROOT
    cell = environ.get("SGE_CELL") or _assigned("SGE_CELL", settings) or "default"
    return Path(root) / cell / "common"


def cluster_name(environ: Mapping[str, str]) -> str | None:
    """The name that the administrator gave the cell, or else the host of its master."""
    folder = common_folder(environ)
    name = _read(folder / "cluster_name").strip() or environ.get("SGE_CLUSTER_NAME", "")
    return name or _read(folder / "act_qmaster").strip() or None


def _assigned(name: str, shell_text: str) -> str | None:
    match = re.search(rf"^{name}=([^\s\"'`$]+)$", shell_text, re.MULTILINE)
    return match[1] if match else None


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
