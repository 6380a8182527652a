"""Ten thousand small files to a node's disk: runyard's staging against `cp -r`, in the same run.

    python -m benchmarks.staging [FILES]

The first staging packs; those of later jobs find the archive. Both are shown.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from runyard.node.staging import stage_in

_EACH = 4096


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name) / "scratch"
        for number in range(count):
            file = scratch / "data" / f"{number % 100}" / f"{number}.bin"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(os.urandom(_EACH))
        ways: dict[str, Callable[[Path], object]] = {
            "cp -r": lambda to: subprocess.run(["cp", "-r", scratch / "data", to], check=True),
            "staging, first job": lambda to: stage_in(scratch, to, ["data"]),
            "staging, later jobs": lambda to: stage_in(scratch, to, ["data"]),
        }
        print(f"{count} files of {_EACH} bytes, {os.cpu_count()} CPUs")
        for what, copy in ways.items():
            node = Path(name) / "node"
            node.mkdir()
            began = time.perf_counter()
            copy(node)
            print(f"{what:20} {time.perf_counter() - began:6.2f} s")
            shutil.rmtree(node)


if __name__ == "__main__":
    main()
