"""Whole sweeps on one GPU: what `--per-gpu auto` gets done beside fixed numbers, all time counted.

    python -m benchmarks.packing_sweeps --models gpt:2300,resnet:2600 --seconds 150 --fixed 8,16

Each trial of a model does so many steps (18 s alone, say, behind 12 s of imports). A sweep runs
for the same time from its command's start, and all steps count. `auto` runs twice: the second sweep
knows what the first one learnt. Needs a GPU, torch and wandb.

    python -m benchmarks.packing_sweeps --models gpt:77000 --seconds 170 --fixed-seconds 60

Trials that are longer than the measurement: a fixed number is measured for a shorter time and goes
on at the speed of its second half.

    python -m benchmarks.packing_sweeps --mixed 6:60 --models cnn:4000

Trials of 6 GiB with, after every seventh, one of a larger model with 60 GiB among them: `auto` runs
the sweep to its end, and every trial has to come to its last step.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
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
    parser.add_argument("--fixed-seconds", type=float, help="where no trial ends in --seconds")
    parser.add_argument("--autos", type=int, default=2)
    parser.add_argument("--most", type=int, default=16)
    parser.add_argument("--mixed", help="SMALL:LARGE, GiB of the two kinds of trials")
    parser.add_argument("--trials", type=int, default=24, help="with --mixed")
    args = parser.parse_args()
    if args.mixed:
        name, _, steps = args.models.partition(":")
        return run_mixed(name, int(steps), args.mixed, args.trials, args.most)
    for model in args.models.split(","):
        name, _, steps = model.partition(":")
        numbers = [*args.fixed.split(","), *(["auto"] * args.autos)]
        best = 0.0
        for number in numbers:
            measured = args.seconds if number == "auto" else args.fixed_seconds or args.seconds
            done, ended, words = run_sweep(
                name, int(steps), number, measured, args.most, args.seconds - measured
            )
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
    model: str, steps: int, per_gpu: str, seconds: float, most: int, more_seconds: float = 0.0
) -> tuple[float, int, list[str]]:
    """Steps and ended trials of all in so many seconds; what the agent said.

    `more_seconds` are not measured: steps are assumed to go on as in the last half of `seconds`.
    """
    with tempfile.TemporaryDirectory() as place:
        until = time.time() + seconds
        lines = [
            f"{sys.executable} {PROGRAM} --model {model} --steps {steps} "
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
            time.sleep(max(0.0, until - time.time()))
            # Programs are cut off: one that ended by itself would pass for a shorter one.
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
    done = [_steps_between(note, 0.0, until) for note in notes]
    late = sum(_steps_between(note, until - seconds / 2, until) for note in notes)
    more = more_seconds * late / (seconds / 2)
    return sum(done) + more, sum(steps_done == steps for steps_done in done), told


def _steps_between(note: list[tuple[float, int]], begin: float, end: float) -> int:
    before = [step for at, step in note if at < begin]
    until_end = [step for at, step in note if at <= end]
    return (until_end or [0])[-1] - (before or [0])[-1]


def run_mixed(model: str, steps: int, sizes: str, trials: int, most: int) -> int:
    """A sweep of two kinds of programs by `auto`, to its end; 0 if all came to their last step."""
    small, large = (float(size) for size in sizes.split(":"))
    with tempfile.TemporaryDirectory() as place:
        lines = [
            f"{sys.executable} {PROGRAM} --note {place}/{index:03}.jsonl --seed {index} "
            + (
                f"--model large --steps {steps // 10} --ballast {large}\n"
                if index % 8 == 7
                else f"--model {model} --steps {steps} --ballast {small}\n"
            )
            for index in range(trials)
        ]
        tasks = Path(place) / "tasks.txt"
        tasks.write_text("".join(lines))
        words = ["--per-gpu", "auto", "--gpus", "1", "-j", str(most), "--project", "packing-mixed"]
        began = time.time()
        farm = subprocess.run(
            [sys.executable, "-m", "runyard", "farm", str(tasks), "-q", *words],
            cwd=place, env={**os.environ, "WANDB_SILENT": "true"}, stdout=subprocess.DEVNULL,
            check=False,
        )  # fmt: skip
        notes = _notes(Path(place))
        attempts = sum(
            sum(after[1] < before[1] for before, after in itertools.pairwise(note)) + 1
            for note in notes
        )
        large = trials // 8
        ends = [note[-1][1] for note in notes]
        whole = min(ends.count(steps), trials - large) + min(ends.count(steps // 10), large)
    print(
        f"{whole} of {trials} trials came to their end in {attempts} attempts, "
        f"{time.time() - began:.0f} s; the farm ended with {farm.returncode}"
    )
    return 0 if whole == trials and farm.returncode == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
