"""Fuzzing for as long as there is time: `python scripts/fuzz.py --seconds 3600 [--target NAME]`.

Inputs that reach new lines, and those that fail, go to tests/fuzz/corpus, which CI replays.
Exit code 1: something was found.
"""

from __future__ import annotations

import argparse
import logging
import secrets
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.fuzz.engine import Figures, explore, keep, write_case
from tests.fuzz.targets import TARGETS
from tests.fuzz.tracing import Coverage


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=3600.0, help="for all targets together")
    parser.add_argument("--target", action="append", choices=sorted(TARGETS), help="only this one")
    parser.add_argument("--beginning", type=int, help="the random generator's seed")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    names = args.target or list(TARGETS)
    all_figures = [
        fuzz(name, args.seconds / len(names), args.beginning or secrets.randbits(32))
        for name in names
    ]
    return 1 if any(figures.findings for figures in all_figures) else 0


def fuzz(name: str, seconds: float, beginning: int) -> Figures:
    coverage = Coverage()
    with coverage.installed():
        target = TARGETS[name]()
        figures = explore(target, beginning=beginning, seconds=seconds, coverage=coverage)
    for kind, case in figures.findings.items():
        file = write_case(name, case, found=True)
        print(f"FOUND {kind}\n  {file}\n{figures.details[kind]}", flush=True)
    written = keep(target, figures.kept)
    target.close()
    print(f"{name} from {beginning}: {figures}; {written} written to the corpus", flush=True)
    for kind in figures.details:
        if kind not in figures.findings:
            print(f"  {kind}")
    return figures


if __name__ == "__main__":
    sys.exit(main())
