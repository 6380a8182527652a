"""What `import runyard.train` costs a program, as a multiple of an empty Python.

    python -m benchmarks.train_import

Starts Python many times, with and without the import, in turns, and counts CPU time, so that what
else the machine does matters little.
"""

from __future__ import annotations

import os
import statistics
import sys

ROUNDS = 40
LIMIT_MS = 15.0
PROGRAMS = {
    "python -c pass": "pass",
    "import runyard.train": "import runyard.train",
    "train.Checkpoint too": "from runyard import train; train.Checkpoint; train.steps",
}


def main() -> int:
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(ROUNDS):
        for name, program in PROGRAMS.items():
            child = os.posix_spawn(sys.executable, [sys.executable, "-c", program], os.environ)
            _, status, used = os.wait4(child, 0)
            if status:
                return 2
            times[name].append(used.ru_utime + used.ru_stime)
    # The quickest quarter: what the machine does besides only ever adds.
    typical = {name: statistics.median(sorted(t)[: ROUNDS // 4]) for name, t in times.items()}
    floor = typical["python -c pass"]
    for name, seconds in typical.items():
        added = (seconds - floor) * 1e3
        print(f"{name:<22} {seconds * 1e3:6.1f} ms   {seconds / floor:.2f} x   {added:+.1f} ms")
    return 0 if (typical["import runyard.train"] - floor) * 1e3 <= LIMIT_MS else 1


if __name__ == "__main__":
    sys.exit(main())
