"""What is worth a look after a sweep: the commands, each with what it shows."""

from __future__ import annotations

from collections.abc import Sequence

from runyard.shapes.sweeps import Sweep, Trial


def next_steps(sweep: Sweep, failed: Sequence[tuple[Trial, str]]) -> list[tuple[str, str]]:
    key, best = sweep["id"], sweep["best"]
    steps = [(f"runyard runs --sweep {key}", "its trials")]
    if best is not None:
        table = "the Pareto front" if has_front(sweep) else "the best ones, as a table"
        steps.append((f"runyard show {key} --best", table))
        steps.append((f"runyard show {best['id']}", "the best one: its metrics, its curves"))
    if failed:
        steps.append((f"runyard logs {failed[-1][0]['id']}", "what a failed one printed"))
        steps.append((f"runyard retry {key}", "run the failed ones again"))
    return steps


def has_front(sweep: Sweep) -> bool:
    """Whether it is after several metrics, of which no trial may be the best in all."""
    config = sweep["config"]
    return bool(config.get("metrics") or config.get("runyard", {}).get("metrics"))
