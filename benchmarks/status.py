"""`runyard status` of a sweep with 10,000 trials and jobs in a real Slurm's queue.

    python -m benchmarks.status

Beside what it cannot do without: one `squeue`, and the start of the command line (`runyard
--version`). All are measured by turns in one run; medians. A stand-in before the real squeue counts
how often it is asked.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.slurm.cluster import ClusterSpec, SlurmCluster

from benchmarks.handout import prepare_sweep
from runyard.client.discover import ensure_server, stop_server
from runyard.home import Home
from runyard.schedulers.slurm.name import cluster_name

TRIALS, JOBS, TIMES = 10_000, 5, 15
LIMIT_SECONDS = 0.5
RUNYARD = [sys.executable, "-m", "runyard"]


def main() -> int:
    with (
        SlurmCluster(ClusterSpec(accounting=False)) as cluster,
        tempfile.TemporaryDirectory() as folder,
    ):
        home = Home(Path(folder) / "state")
        os.environ |= {
            "RUNYARD_HOME": str(home.path),
            "SLURM_CONF": cluster.env["SLURM_CONF"],
            "PATH": cluster.env["PATH"],
        }
        key, _ = prepare_sweep(home, "grid", 1, TRIALS)
        api = ensure_server(home).api
        try:
            sweep = api.sweeps.sweep(key)
            for _ in range(JOBS):
                job = cluster.submit("sleep 600", "--array=1-100%1", "--time=20")
                api.jobs.record(
                    {"cluster": cluster_name() or "", "job_id": job, "kind": "agents",
                     "name": "bench", "submitted_at": time.time(), "sweep": key,
                     "array": "1-100%1", "tasks": 100}
                )  # fmt: skip
            return measure(sweep["id"], Path(folder))
        finally:
            stop_server(home, force=True)


def measure(sweep: str, folder: Path) -> int:
    commands = {
        "squeue": ["squeue", "--me", "--noheader"],
        "runyard --version": [*RUNYARD, "--version"],
        "runyard status": [*RUNYARD, "status", sweep],
        "runyard status, all": [*RUNYARD, "status"],
    }
    took: dict[str, list[float]] = {name: [] for name in commands}
    cpu: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(TIMES + 1):
        for name, words in commands.items():
            began, before = time.perf_counter(), os.times()
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
            if turn:  # The first warms the files.
                took[name].append(time.perf_counter() - began)
                after = os.times()
                cpu[name].append(sum(after[2:4]) - sum(before[2:4]))
    medians = {name: statistics.median(times) for name, times in took.items()}
    floor = medians["squeue"] + medians["runyard --version"]
    print(f"a sweep of {TRIALS} trials, {JOBS} arrays of 100 tasks; medians of {TIMES}")
    for name, median in medians.items():
        used = statistics.mean(cpu[name]) * 1e3
        print(f"  {name:<20} {median * 1e3:7.1f} ms   {median / floor:.2f} x of the first two   "
              f"{used:5.0f} ms CPU")  # fmt: skip
    asked = questions(sweep, folder)
    print(f"  squeue is asked {asked} time(s) by one status")
    return 0 if medians["runyard status"] <= LIMIT_SECONDS and asked == 1 else 1


def questions(sweep: str, folder: Path) -> int:
    """How often one status asks squeue."""
    asked, real = folder / "asked", shutil.which("squeue")
    (folder / "squeue").write_text(f'#!/bin/sh\necho x >>{asked}\nexec {real} "$@"\n')
    (folder / "squeue").chmod(0o755)
    env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    subprocess.run([*RUNYARD, "status", sweep], check=True, stdout=subprocess.DEVNULL, env=env)
    return asked.read_text().count("x")


if __name__ == "__main__":
    sys.exit(main())
