"""Warm starts: trials an hour of a list whose programs begin with a heavy import, warm over cold.

    python -m benchmarks.warm_start --python ENVIRONMENT/bin/python --module torch --seconds 5

Each trial imports the module and works for so many seconds. The same list runs cold and with
`--warm`, in turn, in a state folder of its own; all time from the command's start to its end
counts, also the parent's own import. `--python` is any Python that has the module.

    python -m benchmarks.warm_start --model cnn --steps 3200 --trials 60 --slots 8 --rounds 1

Trials of `small_models.py` that train for so many steps on one GPU. A start is the time from a
process' own start to its first step: imports, CUDA's own start, `wandb.init`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_SMALL_MODELS = Path(__file__).with_name("small_models.py")
_PROGRAM = """\
import importlib, sys, time
began = time.perf_counter()
importlib.import_module(sys.argv[1])
imported = time.perf_counter()
end = imported + float(sys.argv[2])
while time.perf_counter() < end:
    sum(range(10_000))
with open("starts", "a") as file:
    print(f"{imported - began:.6f}", file=file)
"""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--module", default="torch")
    parser.add_argument("--seconds", type=float, default=5.0, help="of work behind the import")
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--model", help="a model of small_models.py, on a GPU")
    parser.add_argument("--steps", type=int, default=3000, help="with --model")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        environ = {**os.environ, "RUNYARD_HOME": str(folder / "state")}
        (folder / "train.py").write_text(_PROGRAM)
        words = [args.python, "train.py", args.module, str(args.seconds)]
        read = [args.python, "-c", f"import {args.module}"]  # From the disk, before it counts.
        subprocess.run(read, cwd=folder, check=True, capture_output=True)
        if args.model:
            words = [args.python, str(_SMALL_MODELS), "--model", args.model]
            words += ["--steps", str(args.steps), "--note", "steps", "--starts", "starts"]
        (folder / "tasks.txt").write_text(f"{shlex.join(words)}\n" * args.trials)
        try:
            hours: dict[str, list[float]] = {"cold": [], "warm": []}
            for kind in list(hours) * args.rounds:
                wall, starts = _run(folder, environ, args, warm=kind == "warm")
                hours[kind].append(3600 * args.trials / wall)
                busy = wall * args.slots / args.trials
                print(
                    f"{kind}  {args.trials} trials in {wall:6.1f} s  {hours[kind][-1]:6.0f} an "
                    f"hour  a start {statistics.mean(starts):6.3f} s, "
                    f"{100 * statistics.mean(starts) / busy:4.1f} % of a slot's time",
                    flush=True,
                )
        finally:
            stop = [sys.executable, "-m", "runyard", "server", "stop"]
            subprocess.run(stop, env=environ, check=False, capture_output=True)
    ratio = statistics.median(hours["warm"]) / statistics.median(hours["cold"])
    print(f"trials an hour, warm over cold: {ratio:.2f}")
    return 0


def _run(
    folder: Path, environ: dict[str, str], args: argparse.Namespace, *, warm: bool
) -> tuple[float, list[float]]:
    """How long the list took, and the start of each trial."""
    seconds = folder / "starts"
    seconds.unlink(missing_ok=True)
    words = ["farm", "tasks.txt", "-q", "--no-check"]
    words += ["--per-gpu" if args.model else "-j", str(args.slots)]
    words += ["--gpus", "1"] if args.model else []
    words += ["--warm", args.module] if warm else []
    began = time.perf_counter()
    ended = subprocess.run(
        [sys.executable, "-m", "runyard", *words], cwd=folder, env=environ, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    wall = time.perf_counter() - began
    if ended.returncode:
        raise SystemExit(ended.stderr)
    if warm and "imported once" not in ended.stderr:
        raise SystemExit(f"it was not warm:\n{ended.stderr}")
    return wall, [float(line) for line in seconds.read_text().split()]


if __name__ == "__main__":
    sys.exit(main())
