"""Options that say to which project a run belongs, and where programs' wandb calls go."""

from __future__ import annotations

import argparse

from runyard.actions.tracking import ProjectOptions
from runyard.cli.resource_flags import given_flags


def add_tracking(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tracking",
        metavar="WHERE",
        help="where wandb logs: embedded (runyard's own server, the default), cloud (W&B's), or "
        "the URL of any W&B server",
    )
    parser.add_argument(
        "--key", metavar="NAME", help="with another server: the key's name in keys.json"
    )


def project_options(args: argparse.Namespace) -> ProjectOptions:
    """What a command line says of the project; a command need not have all of these options."""
    return ProjectOptions(
        given_flags(args),
        project=getattr(args, "project", None),
        entity=getattr(args, "entity", None),
        tracking=getattr(args, "tracking", None),
        key=getattr(args, "key", None),
    )
