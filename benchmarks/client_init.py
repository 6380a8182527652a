"""How long `wandb.init` takes against our server, as a multiple of its own offline time.

    python -m benchmarks.client_init [--times 20]

Each time is a fresh process of the stock client, online and offline in turn. Below stands what the
server took for each request of an online one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from benchmarks.many_runs import serving
from runyard.client.wandb_variables import wandb_variables
from runyard.home import Home

LIMIT = 2.0
PROGRAM = """
import time, wandb
begin = time.perf_counter()
run = wandb.init(project="init", config={"lr": 0.1})
print(time.perf_counter() - begin)
run.finish()
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        home = Home(folder / "state")
        with serving(home, folder / "notes") as discovery:
            environment = wandb_variables(discovery.url, discovery.key, os.environ)
            took = defaultdict[str, list[float]](list)
            for turn in range(args.times + 1):
                for mode in ("offline", "online"):
                    seconds = init(folder, {**environment, "WANDB_MODE": mode})
                    if turn:  # The first of each warms the disk's cache.
                        took[mode].append(seconds)
        requests = [json.loads(line) for line in (folder / "notes").read_text().splitlines()]
    offline, online = (statistics.median(took[mode]) for mode in ("offline", "online"))
    ratio = online / offline
    print(f"wandb.init, median of {args.times} processes each")
    print(f"  offline {offline * 1e3:7.1f} ms   ({spread(took['offline'])})")
    print(f"  online  {online * 1e3:7.1f} ms   ({spread(took['online'])})")
    print(f"  online is {ratio:.2f} x offline  (limit {LIMIT:g} x)")
    by_path = defaultdict[str, list[float]](list)
    for _, seconds, _, method, path in requests:
        # An upload's address ends with a signature, a run's route with what it is for.
        last = "uploads" if path.startswith("/uploads/") else path.rsplit("/", 1)[-1]
        by_path[f"{method} {last}"].append(seconds)
    for name, times in by_path.items():
        each = len(times) / (args.times + 1)
        print(f"  {each:4.1f} x {name:20} {statistics.median(times) * 1e3:6.1f} ms at the server")
    return 0 if ratio <= LIMIT else 1


def init(folder: Path, environment: dict[str, str]) -> float:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env={**os.environ, **environment, "WANDB_DIR": str(folder), "WANDB_SILENT": "true"},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def spread(times: list[float]) -> str:
    return f"{min(times) * 1e3:.0f} to {max(times) * 1e3:.0f}"


if __name__ == "__main__":
    sys.exit(main())
