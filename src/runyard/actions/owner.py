"""Under which project and entity a run or a sweep is kept: one order for every command.

An option, the shell's WANDB_PROJECT and WANDB_ENTITY, the sweep file, `tracking:` of runyard.yaml;
for the project, at last the name of the folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from runyard.actions.tracking import ProjectOptions, tracking_of
from runyard.file_trust import find_marked
from runyard.vocabulary import LONGEST_NAME, NOT_IN_PROJECTS


class Owner(NamedTuple):
    """`named`: the project, unless it is only the folder's name."""

    project: str
    entity: str | None
    named: str | None


def find_owner(
    options: ProjectOptions, folder: Path, of_sweep: tuple[str | None, str | None] = (None, None)
) -> Owner:
    """`of_sweep`: the sweep file's project and entity."""
    shell = (os.environ.get("WANDB_PROJECT"), os.environ.get("WANDB_ENTITY"))
    tracking = tracking_of(options, folder)
    project = options.project or shell[0] or of_sweep[0] or tracking.project
    entity = options.entity or shell[1] or of_sweep[1] or tracking.entity
    # Where programs log to another server, the entity is one of that server's.
    entity = None if tracking.is_elsewhere else entity
    return Owner(project or project_name(folder), entity or None, project or None)


def project_name(folder: Path) -> str:
    """The folder's name, or that of the repository it is in, without what projects may not hold."""
    root = next(find_marked(folder, ".git"), folder)
    name = root.name.translate(dict.fromkeys(map(ord, NOT_IN_PROJECTS), "-"))
    return name[:LONGEST_NAME] or "uncategorized"


def is_name(name: str) -> bool:
    """Whether a run or a project may be called so."""
    is_plain = not any(letter in NOT_IN_PROJECTS for letter in name)
    return is_plain and name not in (".", "..") and len(name) <= LONGEST_NAME


RULE = f"use at most {LONGEST_NAME} characters, none of them in {NOT_IN_PROJECTS}"
