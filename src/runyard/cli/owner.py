"""Under which project and entity a run or a sweep is kept: one order for every command.

An option, the shell's WANDB_PROJECT and WANDB_ENTITY, the sweep file, `tracking:` of runyard.yaml;
for the project, at last the name of the folder.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import NamedTuple

from runyard.cli.tracking import tracking_of

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
    told = tracking_of(args, folder)
    project = project or told.project
    # Where programs log to another server, the entity is one of that server's.
    entity = None if told.is_elsewhere else entity or told.entity
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
