"""Whole sweeps on one GPU: what `--per-gpu auto` gets done beside fixed numbers, all time counted.

    python -m benchmarks.packing_sweeps --models gpt:2300,resnet:2600 --seconds 150 --fixed 8,16

Each trial of a model does so many steps (18 s alone, say, behind 12 s of imports). A sweep runs
for the same time from its command's start, and all steps count. `auto` runs twice: the second sweep
knows what the first one learnt. Needs a GPU, torch and wandb.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.packing import PROGRAM, _notes


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", required=True, help="NAME:STEPS,...")
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--fixed", default="4,8,16")
    parser.add_argument("--autos", type=int, default=2)
    parser.add_argument("--most", type=int, default=16)
    args = parser.parse_args()
    for model in args.models.split(","):
        name, _, steps = model.partition(":")
        numbers = [*args.fixed.split(","), *(["auto"] * args.autos)]
        best = 0.0
        for number in numbers:
            done, ended, words = run_sweep(name, int(steps), number, args.seconds, args.most)
            best = best if number == "auto" else max(best, done)
            share = f"  {100 * done / best:4.0f} % of the best" if best else ""
            print(
                f"{name} of {steps} steps  {number:>4} at a time  {done:8.0f} steps  "
                f"{ended:3} trials ended{share}",
                flush=True,
            )
            print("".join(f"    {word}\n" for word in words), end="", flush=True)
    return 0


def run_sweep(
    model: str, steps: int, per_gpu: str, seconds: float, most: int
) -> tuple[float, int, list[str]]:
    """Steps and ended trials of all in so many seconds; what the agent said."""
    with tempfile.TemporaryDirectory() as place:
        until = time.time() + seconds
        lines = [
            f"{sys.executable} {PROGRAM} --model {model} --until {until} --steps {steps} "
            f"--note {place}/{index}.jsonl --seed {index}\n"
            for index in range(300)
        ]
        tasks = Path(place) / "tasks.txt"
        tasks.write_text("".join(lines))
        words = ["--per-gpu", per_gpu, "--gpus", "1", "--project", f"packing-{model}"]
        words += ["-j", str(most)] if per_gpu == "auto" else []
        log = Path(place) / "said"
        with log.open("w") as said:
            farm = subprocess.Popen(
                [sys.executable, "-m", "runyard", "farm", str(tasks), "-q", *words],
                cwd=place, env={**os.environ, "WANDB_SILENT": "true"}, stderr=said,
                stdout=subprocess.DEVNULL,
            )  # fmt: skip
            time.sleep(max(0.0, until - time.time()) + 1)
            farm.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                farm.wait(5)
            farm.terminate()  # Asked again, it kills what is left.
            farm.wait(60)
        notes = _notes(Path(place))
        if not notes:
            consoles = [file.read_text()[-2000:] for file in Path(place).rglob("*.log")]
            sys.exit(f"no program got anything done:\n{log.read_text()[-3000:]}\n{consoles[:2]}")
        told = [line for line in log.read_text().splitlines() if " at a time" in line]
    done = [note[-1][1] for note in notes]
    return sum(done), sum(one >= steps - 500 for one in done), told


if __name__ == "__main__":
    sys.exit(main())
