"""Writes tests/green_files.json: the slow test files that passed here on this very code.

    CI=1 RUNYARD_EVERY_TEST=1 ./test
    scripts/keep_green_files.py          # then commit the file

`./test` on a clone of that commit leaves them out (tests/green_files.py). Runs without CI do not
count: there tests may be skipped for want of a program. Ends with 1, and names them, where files
are missing: they failed, passed only on a second try, or did not run.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.green_files import (
    ALWAYS,
    COMMITTED,
    OF_THIS_MACHINE,
    Checkout,
    find_green,
    read_green,
    write_green,
)
from tests.proofs import read_commit_day


def main() -> int:
    checkout = Checkout(Path.cwd())
    known = [read_green(COMMITTED), read_green(OF_THIS_MACHINE)]
    green = find_green(checkout, known, read_commit_day(), in_ci=True)
    write_green(green, COMMITTED)
    missing = sorted(checkout.inputs.keys() - green.keys() - set(ALWAYS))
    for file in missing:
        print(f"not green on this code: {file}")
    print(f"== {COMMITTED}: {len(green)} files, {len(missing)} missing")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
