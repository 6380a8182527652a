"""What Slurm calls the cluster that this machine belongs to."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

_CONFIGURATIONS = ("/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf")
_SECONDS = 5  # What a controller may take to tell its name before we do without.


def cluster_name(environ: Mapping[str, str] = os.environ) -> str | None:
    """From the environment or a file, where they say it; else Slurm is asked. None: no Slurm."""
    named = environ.get("SLURM_CLUSTER_NAME")
    if named:
        return named
    for file in (environ.get("SLURM_CONF"), *_CONFIGURATIONS):
        name = _name_in(Path(file)) if file else None
        if name:
            return name
    return _asked_name() if shutil.which("scontrol", path=environ.get("PATH")) else None


def _name_in(file: Path) -> str | None:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.search(r"^\s*ClusterName\s*=\s*(\S+)", text, re.MULTILINE | re.IGNORECASE)
    return match[1] if match else None


def _asked_name() -> str | None:
    try:
        answer = subprocess.run(
            ["scontrol", "show", "config"],
            capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"^ClusterName\s*=\s*(\S+)", answer.stdout, re.MULTILINE)
    return match[1] if match else None
