"""How long `runyard --version` and `--help` take, as multiples of an empty Python.

    python -m benchmarks.cli_start

Needs hyperfine (Debian: apt-get install hyperfine). All three are measured in one run, without a
shell between.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

LIMITS = {"--version": 3.0, "--help": 5.0}


def main() -> int:
    hyperfine = shutil.which("hyperfine")
    if hyperfine is None:
        print("hyperfine is missing: sudo apt-get install hyperfine", file=sys.stderr)
        return 2
    runyard = str(Path(sysconfig.get_path("scripts")) / "runyard")
    commands = [f"{sys.executable} -c pass", *(f"{runyard} {option}" for option in LIMITS)]
    with tempfile.NamedTemporaryFile(suffix=".json") as results:
        subprocess.run(
            [
                hyperfine,
                "-N",
                "--warmup",
                "5",
                "--runs",
                "50",
                "--export-json",
                results.name,
                *commands,
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        measured = json.loads(Path(results.name).read_text())["results"]
    floor = measured[0]["median"]
    print(f"python -c pass     {floor * 1e3:6.1f} ms")
    held = True
    for (option, limit), result in zip(LIMITS.items(), measured[1:], strict=True):
        ratio = result["median"] / floor
        held &= ratio <= limit
        took = f"{result['median'] * 1e3:6.1f} ms"
        print(f"runyard {option:<10} {took}   {ratio:.2f} x  (limit {limit:g} x)")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
