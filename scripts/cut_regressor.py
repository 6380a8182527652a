"""Cut the CNN regressor off on this machine's GPU, by signal and by kill -9, and go on with it.

    PYTHONPATH=src python scripts/cut_regressor.py [--epochs 30] [--config test]

Needs torch alone. Trains twice uncut; then anew, told to save (USR2) after some epochs, gone on
with and killed with -9 after some more, and gone on with to the end. Prints epochs a second, and
how far the cut one's weights are from an uncut one's, beside how far the two uncut ones are from
each other: on a CPU not a bit; a GPU's sums come in another order each time.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "examples" / "cnn_regressor" / "train.py"
COMPARE = """
import sys, torch
a, b = (torch.load(f"{f}/expts/{sys.argv[3]}/0/checkpoints/latest/model.pt", weights_only=True,
                   map_location="cpu") for f in sys.argv[1:3])
print(max(float((a[name] - b[name]).abs().max()) for name in a))
"""


def train(folder: Path, config: str, epochs: int, cut: tuple[int, signal.Signals] | None) -> str:
    """Train until the end, or until the signal after so many epochs; what was printed."""
    program = subprocess.Popen(
        [sys.executable, str(PROGRAM), f"--config={config}", f"--max_epochs={epochs}",
         "--log_to_wandb=False", "--num_data_workers=0", f"--root_dir={folder}"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert program.stdout is not None
    lines = []
    for line in program.stdout:
        lines.append(line)
        if cut is not None and line.startswith(f"epoch {cut[0]}:"):
            program.send_signal(cut[1])
    expected = {None: 0, signal.SIGUSR2: 75, signal.SIGKILL: -9}[cut and cut[1]]
    if program.wait() != expected:
        sys.exit(f"exit code {program.returncode}, not {expected}:\n{''.join(lines)}")
    return "".join(lines)


def distance(one: Path, other: Path, config: str) -> float:
    """How far the final weights of two trainings are apart, at most."""
    words = [sys.executable, "-c", COMPARE, str(one), str(other), config]
    return float(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--config", default="test")
    args = parser.parse_args()
    place = Path(tempfile.mkdtemp())
    try:
        began = time.monotonic()
        said = train(place / "uncut", args.config, args.epochs, None)
        seconds = [float(one) for one in re.findall(r"epoch .* ([\d.]+) s$", said, re.M)]
        print(re.findall(r".*million parameters.*", said)[0])
        print(
            f"uncut: {time.monotonic() - began:.1f} s, {1 / max(0.01, min(seconds)):.1f} epochs/s"
        )
        train(place / "again", args.config, args.epochs, None)
        for cut in (
            (args.epochs // 3, signal.SIGUSR2),
            (2 * args.epochs // 3, signal.SIGKILL),
            None,
        ):
            said = train(place / "cut", args.config, args.epochs, cut)
            first = re.findall(r"^epoch (\d+):", said, re.M)
            how = "to the end" if cut is None else f"until {cut[1].name} after epoch {cut[0]}"
            print(f"from epoch {first[0]} {how}")
        apart = distance(place / "uncut", place / "cut", args.config)
        floor = distance(place / "uncut", place / "again", args.config)
        print(f"weights are apart by {apart:.1e} at most; two uncut runs by {floor:.1e}")
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
