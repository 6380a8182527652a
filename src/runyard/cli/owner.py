"""Under which project and entity a run or a sweep is kept: one order for every command.

An option, the shell's WANDB_PROJECT and WANDB_ENTITY, the sweep file, `tracking:` of runyard.yaml;
for the project, at last the name of the folder.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import NamedTuple

_NOT_IN_NAMES = "/\\#?%:"  # W&B's rule for ids and projects: they are parts of addresses.
_LONGEST_NAME = 128


class Owner(NamedTuple):
    """`named`: the project, unless it is only the folder's name."""

    project: str
    entity: str | None
    named: str | None


def find_owner(
    args: argparse.Namespace, folder: Path, of_sweep: tuple[str | None, str | None] = (None, None)
) -> Owner:
    """`args`: a command's options; `of_sweep`: the sweep file's project and entity."""
    given = (args.project, getattr(args, "entity", None))
    shell = (os.environ.get("WANDB_PROJECT"), os.environ.get("WANDB_ENTITY"))
    project, entity = (
        one or two or three for one, two, three in zip(given, shell, of_sweep, strict=True)
    )
    if not (project and entity):
        told = _of_project_file(args, folder)
        project, entity = project or told[0], entity or told[1]
    return Owner(project or project_name(folder), entity or None, project or None)


def project_name(folder: Path) -> str:
    """The folder's name, or that of the repository it is in, without what projects may not hold."""
    root = next((place for place in (folder, *folder.parents) if (place / ".git").exists()), folder)
    kept = "".join("-" if letter in _NOT_IN_NAMES else letter for letter in root.name)
    return kept[:_LONGEST_NAME] or "uncategorized"


def is_name(name: str) -> bool:
    """Whether a run or a project may be called so."""
    is_plain = not any(letter in _NOT_IN_NAMES for letter in name)
    return is_plain and name not in (".", "..") and len(name) <= _LONGEST_NAME


RULE = f"use at most {_LONGEST_NAME} characters, none of them in {_NOT_IN_NAMES}"


def _of_project_file(args: argparse.Namespace, folder: Path) -> tuple[str | None, str | None]:
    from runyard.config.project_text import find_project_file, read_project_text

    path = find_project_file(folder)
    if path is None:
        return None, None
    data = read_project_text(path).data
    if any((part or {}).get("tracking") for part in (data.get("clusters") or {}).values()):
        from runyard.config.flags import given_flags
        from runyard.config.project_file import read_project

        tracking = read_project(folder, given_flags(args)).tracking  # The cluster decides.
        return tracking.project, tracking.entity
    told = data.get("tracking") or {}
    return told.get("project"), told.get("entity")
