"""Runs the Slurm ring on several releases of Slurm, and writes docs/slurm-releases.md from it.

    scripts/slurm_releases.py                           # every flow on every release
    scripts/slurm_releases.py 26.05                     # on this one
    scripts/slurm_releases.py 24.11 --flow ranks        # one flow of it
    scripts/slurm_releases.py 24.11 --flow chains --long # with the long forms of its tests
    scripts/slurm_releases.py --list                    # runs nothing: writes the page anew

`./test` runs the flows on the Slurm that this machine has. Other releases come from other Debians
(tests/slurm/releases.py), each made once by mmdebstrap and kept in .cache; root is needed. What a
run found is recorded in tests/slurm/releases.json at once, flow by flow: commit it with the page.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from suite import run_pytest  # First: `tests` is found by it.
from tests.slurm.release_page import (
    FLOWS,
    LONG_FORMS,
    PAGE,
    RECORD,
    Result,
    read_results,
    write_page,
)
from tests.slurm.releases import RELEASES, command_in, ensure_release, slurm_version

ROOT = Path(__file__).resolve().parents[1]
OUTCOMES = ("passed", "skipped", "failed")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Run and record the Slurm ring by release.")
    parser.add_argument("releases", nargs="*", metavar="RELEASE", default=list(RELEASES))
    parser.add_argument("--flow", action="append", choices=FLOWS, help="this one; may be repeated")
    parser.add_argument("--long", action="store_true", help="the long forms too: hours")
    parser.add_argument("--list", action="store_true", help="run nothing")
    options = parser.parse_args(words)
    unknown = sorted(set(options.releases) - set(RELEASES))
    if unknown:
        parser.error(f"no such release: {', '.join(unknown)}; known are {', '.join(RELEASES)}")
    os.chdir(ROOT)
    is_green = True
    for release in [] if options.list else options.releases:
        root = ensure_release(release)
        version = slurm_version(root)
        for flow in options.flow or FLOWS:
            print(f"== {release} ({version}): {flow}", flush=True)
            result = _run(root, flow, version, is_long=options.long)
            is_green = is_green and not result["failed"]
            results = read_results()
            results.setdefault(release, {})[flow] = result
            RECORD.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    write_page()
    print(f"== {PAGE.relative_to(ROOT)} is written")
    return 0 if is_green else 1


def _run(root: Path, flow: str, version: str, *, is_long: bool) -> Result:
    files = [str(Path("tests/slurm") / f"test_{name}.py") for name in FLOWS[flow]]
    switches = LONG_FORMS if is_long else {}
    _, ended, _ = run_pytest(["-q", *files], [], switches, within=partial(command_in, root))
    tests = {outcome: [name for name in ended if ended[name] == outcome] for outcome in OUTCOMES}
    return {
        "version": version,
        "passed": len(tests["passed"]),
        "skipped": len(tests["skipped"]),
        "failed": sorted(tests["failed"]) if ended else ["nothing ran"],
        "date": datetime.now(timezone.utc).date().isoformat(),
        "commit": _commit(),
        "is_long": is_long,
    }


def _commit() -> str:
    """What was run: a plus says that files were changed since, other than those written here."""
    commit = _git("rev-parse", "--short=7", "HEAD")
    written = (f":!{path.relative_to(ROOT)}" for path in (RECORD, PAGE))
    return commit + ("+" if _git("status", "--porcelain", "-uno", "--", ".", *written) else "")


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], capture_output=True, text=True, check=True
    ).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
