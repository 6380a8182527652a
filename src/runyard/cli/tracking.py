"""Where a program's wandb calls go: to our own server, or to another one."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from runyard.cli.output import say
from runyard.client.keys import find_key
from runyard.client.wandb_server import target_url

EMBEDDED = "embedded"


def add_tracking(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tracking",
        metavar="WHERE",
        default=EMBEDDED,
        help="where wandb logs: embedded (runyard's own server, the default), cloud (W&B's), or "
        "the URL of any W&B server",
    )
    parser.add_argument(
        "--account", metavar="NAME", help="with another server: the key's name in keys.json"
    )


def other_server(args: argparse.Namespace) -> dict[str, str] | None:
    """What the client needs to reach another server, and nothing else; None for our own."""
    if args.tracking == EMBEDDED:
        return None
    url = target_url(args.tracking)
    found = find_key(url, os.environ, Path.cwd(), args.account)
    if found.warning:
        say(found.warning)
    return {"WANDB_BASE_URL": url, "WANDB_API_KEY": found.key}
