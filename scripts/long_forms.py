"""Runs the long forms that docs/requirements.md names, and records those that passed.

    scripts/long_forms.py                   # every test of the table that has a switch
    scripts/long_forms.py S2.31 S2.36       # those of these rows
    scripts/long_forms.py --list            # runs nothing: when each was green last

A test passes where at least one of its parameters passed and none failed. The record,
tests/long_forms.json, is to be committed: `./test` reads it, and wants no run that is more than
two weeks older than the commit it tests. Everything else has to be committed before, so that the
recorded commit is what was tested.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from datetime import datetime, timezone

from suite import run_pytest  # First: `tests` is found by it.
from tests.proofs import LONG_FORMS, find_unproved, read_commit_day, read_records, write_records
from tests.requirements import NamedTest, Row, read_rows


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Run and record the table's long forms.")
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--list", action="store_true", help="run nothing")
    options = parser.parse_args(words)
    rows = [row for row in read_rows() if not options.rows or row.id in options.rows]
    tests = sorted({test for row in rows for test in row.tests if test.switches}, key=str)
    if options.list:
        records = read_records()
        for test in tests:
            record = records.get(str(test))
            print(f"{record['date']} {record['commit']}" if record else "never", f" {test}")
        return 0
    changed = _ask_git("status", "--porcelain", "--", ".", f":!{LONG_FORMS}")
    if changed:
        print(f"error: commit first, so that what is recorded was tested:\n{changed}")
        return 2
    not_green = [test for test in tests if not _run(test)]
    for test in not_green:
        print(f"not green, not recorded: {test}")
    print(f"== {len(tests)} long forms, {len(tests) - len(not_green)} green")
    return 1 if not_green else 0


def _run(test: NamedTest) -> bool:
    """Recorded at once: hours of other tests may follow."""
    print(f"== {test}", flush=True)
    switches = dict(test.switches)
    _, ended, _ = run_pytest(["-q", test.name], [], {**switches, "CI": "1"})
    row = Row(id="", statement="", tests=(test,))
    if find_unproved([row], ended, {**os.environ, **switches}, {}, read_commit_day()):
        return False
    records = read_records()
    records[str(test)] = {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "commit": _ask_git("rev-parse", "--short", "HEAD"),
    }
    write_records(records)
    return True


def _ask_git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], capture_output=True, text=True, check=True
    ).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
