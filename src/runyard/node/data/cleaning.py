"""On one node: removes the folders that dead jobs left, and says what was there before and after.

cleaning BASE [dry]
"""

from __future__ import annotations

import json
import sys

from runyard.node.data.local_folder import folders_in, left_overs, remove_unheld


def clean(base: str, *, dry_run: bool) -> dict[str, list[str]]:
    """The left-overs before and after, and what jobs that live hold."""
    before = list(left_overs(base))
    if not dry_run:
        for path in before:
            remove_unheld(path)
    there = folders_in(base)
    after = [path for path in before if path in there]
    return {
        "before": before,
        "after": after,
        "held": [folder for folder in there if folder not in before],
    }


def main() -> int:
    base, *rest = sys.argv[1:]
    print(json.dumps(clean(base, dry_run="dry" in rest)), flush=True)
    return 0
