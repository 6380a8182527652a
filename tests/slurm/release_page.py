"""docs/slurm-releases.md, made from what `scripts/slurm_releases.py` has recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict

from .releases import RELEASES

RECORD = Path(__file__).with_name("releases.json")
PAGE = Path(__file__).parents[2] / "docs" / "slurm-releases.md"
# Flow -> the files of the Slurm ring that try it.
FLOWS = {
    "submission": ("submission", "submission_limits"),
    "operations": ("operations", "doctor"),
    "interruptions": ("interruptions", "endings"),
    "chains": ("chains",),
    "grace time": ("grace_time",),
    "reservations and maintenance": ("by_hand", "chain_forms"),
    "ranks": ("ranks", "more_nodes"),
    "on the nodes": ("on_the_nodes",),
    "reports": ("reports",),
    "server as a job": ("server_job",),
    "without accounting": ("without_accounting",),
    "containers": ("container_ranks", "pyxis"),
    "troubled site": ("troubled_site", "lost_answers"),
    "elastic nodes": ("elastic_nodes",),
    "stock agents": ("stock_agents",),
    "scheduler's contract": ("conformance", "wishes"),
    "the rig itself": ("cluster",),
}
# What `--long` sets: the long forms of the flows' tests.
LONG_FORMS = {"RUNYARD_LONG_JOBS": "1", "RUNYARD_ALL_SLURM": "1"}
_HEAD = """\
# Slurm releases

runyard's tests on real clusters of several releases of Slurm, each from the Debian that has it.
The table is written by the run: `scripts/slurm_releases.py`; for a part of it
`scripts/slurm_releases.py 26.05 --flow ranks`; `--long` adds the long forms. `./test` runs the same
flows on the Slurm that the machine has.

"""


class _Length(TypedDict, total=False):
    is_long: bool
    """Whether the long forms ran too."""


class Result(_Length):
    """What one flow did on one release."""

    version: str
    passed: int
    skipped: int
    failed: list[str]
    date: str
    commit: str


def read_results() -> dict[str, dict[str, Result]]:
    """Release -> flow -> result."""
    if not RECORD.exists():
        return {}
    results: dict[str, dict[str, Result]] = json.loads(RECORD.read_text())
    return results


def write_page() -> None:
    PAGE.write_text(page_text(read_results()), encoding="utf-8")


def page_text(results: dict[str, dict[str, Result]]) -> str:
    releases = [release for release in RELEASES if release in results]
    rows = [
        ["flow", *(_title(release, results[release]) for release in releases)],
        ["---"] * (len(releases) + 1),
        *([flow, *(_cell(results[one].get(flow)) for one in releases)] for flow in FLOWS),
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    lines = [
        f"- {release}, {flow}: `{name}`"
        for release in releases
        for flow in FLOWS
        for name in results[release].get(flow, _NOT_RUN)["failed"]
    ]
    failures = "\n## What failed\n\n" + "\n".join(lines) + "\n" if lines else ""
    return f"{_HEAD}{table}\n\n{_LEGEND}{failures}"


_LEGEND = """\
A cell says how many tests passed, of how many that ran, and at which commit. Long forms stand
behind [switches](design.md#proof) and are among the skipped, except where a cell says "long".
"""
_NOT_RUN = Result(version="", passed=0, skipped=0, failed=[], date="", commit="")


def _title(release: str, flows: dict[str, Result]) -> str:
    newest = max(flows.values(), key=lambda result: result["date"])
    return f"{newest['version']} ({RELEASES[release]}, {newest['date']})"


def _cell(result: Result | None) -> str:
    if result is None:
        return "not run"
    ran = result["passed"] + len(result["failed"])
    skipped = f", {result['skipped']} skipped" if result["skipped"] else ""
    mark = "" if not result["failed"] else " **failed**"
    length = "long, " if result.get("is_long") else ""
    return f"{result['passed']} of {ran}{skipped}{mark} ({length}{result['commit']})"
