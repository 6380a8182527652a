"""Write the integrations' table in docs/wandb-compatibility.md from the tests' last results."""

from __future__ import annotations

from tests.integrations.cases import CASES, Case, Result, read_results
from tests.wandb_clients.page import put_section

_HEAD = (
    "| framework | release | logs by | arrived |\n| --- | --- | --- | --- |"
)  # fmt: skip


def main() -> None:
    results = read_results()
    missing = [case.name for case in CASES if case.program not in results]
    if missing:
        raise SystemExit(f"not tried yet: {', '.join(missing)}; see test_integrations.py")
    rows = [row(case, results[case.program]) for case in CASES]
    clients = sorted({result.wandb for result in results.values()})
    put_section("integrations", "\n".join([f"With client {', '.join(clients)}.", "", _HEAD, *rows]))


def row(case: Case, result: Result) -> str:
    kinds = [f"{result.metrics} metric{'s' * (result.metrics != 1)}"]
    if result.settings:
        kinds.append(f"{result.settings} setting{'s' * (result.settings != 1)}")
    kinds += ["the model as an artifact"] if case.artifact else []
    kinds += ["charts and images"] if case.media else []
    return f"| {case.name} | {result.version} | {case.by} | {', '.join(kinds)} |"


if __name__ == "__main__":
    main()
