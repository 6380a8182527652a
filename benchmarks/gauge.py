"""Is what `runyard gauge` says true? GPU memory against torch's own, its number against the best.

    python -m benchmarks.gauge --models mlp,cnn,large --most 16

For each model two lines. *Memory*: the peak that the gauge saw from outside, over the most that
torch has held plus what CUDA's context takes; to be within 5 %. *Packing*: how many at a time
`--pack` proposes, and what so many get done under a real agent, over the best of 1, 2, 4 and so on;
to be within 10 %. Needs torch and wandb in the Python that runs it. Without a GPU the memory is
passed over and programs share the CPUs: that tries the benchmark itself.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.packing import PROGRAM, run_fixed

MEMORY_GOAL, PACKING_GOAL = 0.05, 0.9
_ENDLESS = "100000"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default="mlp,cnn,large")
    parser.add_argument("--most", type=int, default=16)
    parser.add_argument("--mps", default="auto")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each fixed number")
    parser.add_argument("--look", default="60s", help="how long the gauge looks, at most")
    args = parser.parse_args()
    good = True
    for model in args.models.split(","):
        good = memory_is_true(model, args.look) and good
        good = packing_is_good(model, args) and good
    return 0 if good else 1


def memory_is_true(model: str, look: str) -> bool:
    """The peak seen from outside, against what the program knows of itself."""
    with tempfile.TemporaryDirectory() as place:
        own = Path(place) / "figures.json"
        told = _gauge(["--for", look], model, place, "--figures", str(own))
        if not own.exists():
            sys.exit(f"{model} did not come to its first steps in {look}: --look longer")
        known = json.loads(own.read_text())
    seen = told["figures"].get("vram_peak", 0)
    if not known["context"]:
        print(f"{model:6} memory: no GPU here; {told['figures']['memory_peak'] / 1e6:.0f} MB host")
        return True
    expected = known["reserved"] + known["context"]
    off = seen / expected - 1
    whose = " (of the card)" if told["figures"]["vram_is_of_card"] else ""
    print(
        f"{model:6} memory: seen {seen / 1e6:.0f} MB{whose}, torch {known['reserved'] / 1e6:.0f} + "
        f"context {known['context'] / 1e6:.0f} MB, {100 * off:+.1f} %",
        flush=True,
    )
    return bool(abs(off) <= MEMORY_GOAL)


def packing_is_good(model: str, args: argparse.Namespace) -> bool:
    """The number that is proposed, against the best that is measured with agents."""
    with tempfile.TemporaryDirectory() as place:
        words = ["--pack", str(args.most), "--for", args.look, "--mps", args.mps]
        told = _gauge(words, model, place)
    proposed = int(told["ask"]["programs"])
    numbers = [1]
    while numbers[-1] * 2 <= args.most:
        numbers.append(numbers[-1] * 2)
    mps = "off" if args.mps == "off" else "auto"
    rates = {
        number: run_fixed(model, number, mps, args.seconds)
        for number in sorted({*numbers, proposed})
    }
    best = max(rates, key=lambda number: rates[number])
    share = rates[proposed] / rates[best]
    told_rates = ", ".join(f"{number}: {rate:.0f}" for number, rate in rates.items())
    print(
        f"{model:6} packing: {proposed} proposed, best {best}, {100 * share:.0f} % of it "
        f"(steps/s: {told_rates})",
        flush=True,
    )
    for level in told["levels"]:
        print(
            f"         the gauge saw {level['count']} at a time: {level['rate'] or 0:.0f} steps/s"
        )
    return share >= PACKING_GOAL


def _gauge(words: list[str], model: str, place: str, *more: str) -> dict[str, Any]:
    program = [
        sys.executable, str(PROGRAM), "--model", model, "--seconds", _ENDLESS,
        "--note", f"{place}/{{seed}}.jsonl", "--seed", "{seed}", *more,
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "runyard", "gauge", "--json", "--no-keep", *words, "--", *program],
        env={**os.environ, "WANDB_SILENT": "true"}, cwd=place, text=True, capture_output=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"runyard gauge failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    sys.exit(main())
