"""What programs that share a GPU get done together: fixed numbers of them, and `--per-gpu auto`.

    python -m benchmarks.packing --models cnn,mlp --most 16

Each line of the table: so many programs at a time, with MPS and without, and how many steps they
do together in a second, one program alone = 1. Then `auto` has to find its number by itself. Needs
a GPU, and torch and wandb in the Python that runs it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = Path(__file__).with_name("small_models.py")
MEASURED_SECONDS = 10.0
# Of auto: long enough for five levels, each of which imports torch first.
AUTO_SECONDS = 150.0
GOAL = 0.9


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default="cnn,mlp")
    parser.add_argument("--most", type=int, default=16)
    parser.add_argument("--mps", default="off,on", help="off, on, or both")
    parser.add_argument("--seconds", type=float, default=MEASURED_SECONDS)
    parser.add_argument("--auto-seconds", type=float, default=AUTO_SECONDS)
    args = parser.parse_args()
    good = True
    for model in args.models.split(","):
        rates: dict[tuple[str, int], float] = {}
        for mps in args.mps.split(","):
            numbers = [1]
            while numbers[-1] * 2 <= args.most:
                numbers.append(numbers[-1] * 2)
            for number in numbers:
                rates[mps, number] = run_fixed(model, number, mps, args.seconds)
                alone = next(iter(rates.values()))
                share = rates[mps, number] / alone
                print(
                    f"{model}  MPS {mps:3}  {number:3} at a time  {rates[mps, number]:9.0f} "
                    f"steps/s  {share:5.2f}",
                    flush=True,
                )
        mps = args.mps.split(",")[-1]
        rate, number, words = run_auto(model, args.most, mps, args.auto_seconds)
        best = max(found for (which, _), found in rates.items() if which == mps)
        print(
            f"{model}  MPS {mps:3}  auto: {number:3}    {rate:9.0f} steps/s  "
            f"{rate / next(iter(rates.values())):5.2f}   {100 * rate / best:.0f} % of the best",
            flush=True,
        )
        print("\n".join(f"    {line}" for line in words), flush=True)
        good = good and rate >= GOAL * best
    return 0 if good else 1


def run_fixed(model: str, number: int, mps: str, seconds: float) -> float:
    """Steps a second of so many programs, while all of them are at work."""
    with tempfile.TemporaryDirectory() as place:
        # Some begin later than others: those that are first run a little longer.
        length = seconds + 3 + number / 2
        lines = [_line(model, place, f"--seconds {length}", index) for index in range(number)]
        _farm(Path(place), lines, ["--per-gpu", str(number), "--gpus", "1", "--mps", mps])
        notes = _notes(Path(place))
    assert len(notes) == number, f"{len(notes)} of {number} programs began"
    begin = max(note[0][0] for note in notes) + 1
    end = min(note[-1][0] for note in notes)
    assert end - begin >= seconds / 3, f"only {end - begin:.1f} s in which all were at work"
    return sum(_rate(note, begin, end) for note in notes)


def run_auto(model: str, most: int, mps: str, seconds: float) -> tuple[float, int, list[str]]:
    """The same at the end of a farm that finds out by itself; how many it found; its words."""
    with tempfile.TemporaryDirectory() as place:
        until = time.time() + seconds
        lines = [_line(model, place, f"--until {until}", index) for index in range(2 * most)]
        said = _farm(
            Path(place), lines,
            ["--per-gpu", "auto", "-j", str(most), "--gpus", "1", "--mps", mps],
        )  # fmt: skip
        # Programs that begin when the time is over note nothing.
        notes = [note for note in _notes(Path(place)) if note and note[-1][0] > until - 2]
    begin = until - MEASURED_SECONDS
    late = [note for note in notes if note[0][0] < begin]
    words = [line for line in said if " at a time (" in line or "MPS" in line]
    return sum(_rate(note, begin, until) for note in late), len(late), words


def _line(model: str, place: str, more: str, index: int) -> str:
    return (
        f"{sys.executable} {PROGRAM} --model {model} {more} --note {place}/{index}.jsonl "
        f"--seed {index}"
    )


def _farm(place: Path, lines: list[str], words: list[str]) -> list[str]:
    """Run the lines; what the agent said."""
    tasks = place / "tasks.txt"
    tasks.write_text("".join(f"{line}\n" for line in lines))
    done = subprocess.run(
        [sys.executable, "-m", "runyard", "farm", str(tasks), "-q", *words],
        cwd=place, env={**os.environ, "WANDB_SILENT": "true"}, text=True, stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"runyard farm failed:\n{done.stderr}")
    return done.stderr.splitlines()


def _notes(place: Path) -> list[list[tuple[float, int]]]:
    found = []
    for file in sorted(place.glob("*.jsonl")):
        rows = [json.loads(line) for line in file.read_text().splitlines() if line.endswith("]")]
        found.append([(at, step) for at, step in rows])
    return [rows for rows in found if rows]


def _rate(note: list[tuple[float, int]], begin: float, end: float) -> float:
    inside = [(at, step) for at, step in note if begin <= at <= end]
    if len(inside) < 2:
        return 0.0
    return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])


if __name__ == "__main__":
    sys.exit(main())
