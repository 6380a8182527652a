"""Whether each row of docs/requirements.md was proved: in this run, or by a long form lately.

A long form is a test behind a switch. Its last green run stands in tests/long_forms.json, written
by `scripts/long_forms.py`; it holds for two weeks of commits.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timezone
from pathlib import Path

from tests.requirements import NamedTest, Row

LONG_FORMS = Path("tests/long_forms.json")
MOST_DAYS = 14

Records = dict[str, dict[str, str]]


def find_unproved(
    rows: Iterable[Row],
    ended: Mapping[str, str],
    environ: Mapping[str, str],
    records: Records,
    committed: date | None,
) -> list[str]:
    """A line for each test that a row names and that proves nothing here.

    `ended` says how each test of this run ended, by its full name with parameters. `committed` is
    the day of the commit that is tested, not today: the same commit gets the same answer for ever.
    """
    outcomes: dict[str, set[str]] = {}
    for name, how in ended.items():
        outcomes.setdefault(name.partition("[")[0], set()).add(how)
    lines = []
    for row in rows:
        for test in row.tests:
            reason = _why_unproved(test, outcomes.get(test.name, set()), environ)
            if reason and test.switches:
                reason = _why_stale(records.get(str(test)), committed)
            if reason:
                lines.append(f"{row.id}  {test}: {reason}")
    return lines


def _why_unproved(test: NamedTest, outcomes: set[str], environ: Mapping[str, str]) -> str:
    if any(environ.get(name) != value for name, value in test.switches):
        return "its switch is not set"
    if "passed" in outcomes and "failed" not in outcomes:
        return ""
    return "failed" if "failed" in outcomes else "skipped" if outcomes else "did not run"


def _why_stale(record: dict[str, str] | None, committed: date | None) -> str:
    if record is None:
        return f"no green run of it is recorded in {LONG_FORMS}"
    days = (committed - date.fromisoformat(record["date"])).days if committed else 0
    if days > MOST_DAYS:
        return f"its last green run ({record['date']}) is {days} days older than this commit"
    return ""


def read_records(file: Path = LONG_FORMS) -> Records:
    """Long form -> date and commit of its last green run."""
    records: Records = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return records


def write_records(records: Records, file: Path = LONG_FORMS) -> None:
    """One line a test, so that a change of one is a change of one line."""
    lines = [f"{json.dumps(name)}: {json.dumps(records[name])}" for name in sorted(records)]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def read_commit_day() -> date | None:
    """In UTC. None where there is no git or no repository: an unpacked release."""
    try:
        seconds = subprocess.check_output(
            ["git", "log", "-1", "--format=%ct"], text=True, stderr=subprocess.DEVNULL
        )
        return datetime.fromtimestamp(int(seconds), tz=timezone.utc).date()
    except (OSError, subprocess.CalledProcessError):
        return None
