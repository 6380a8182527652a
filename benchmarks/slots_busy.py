"""How much of the slots' time is spent in trials, from job start to job end, on a real Slurm.

    python -m benchmarks.slots_busy [TRIALS [SECONDS]]

80 trials of 5 s on 8 slots over 4 nodes, in two forms: an array of eight agents, and one job over
four nodes with two slots each. Slot time is Slurm's own: from StartTime to EndTime of each task,
times its slots, so the start of shell and agent, and waiting for the others at the end, count
against us. Beside it, a bare array of the same eighty `sleep`s, one a task, eight at once: what
Slurm alone does with the same slots, from the first start to the last end.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from tests.slurm.cluster import FINAL_STATES, SlurmCluster

from benchmarks.state_folder import isolated_home

SLOTS = 8
LIMIT = 0.95
_PATIENCE = 900.0
_FORMS = {
    "an array of 8 agents": ("--agents", "8", "--cpus", "2"),
    "4 nodes of one job": ("--form", "nodes", "--agents", "4", "--slots", "2", "--cpus", "4"),
}


def main() -> int:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 80
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 5.0
    worst = 1.0
    with tempfile.TemporaryDirectory() as folder, SlurmCluster() as cluster:
        project = Path(folder) / "project"
        project.mkdir()
        (project / "tasks.txt").write_text(f"sleep {seconds:g}\n" * trials)
        with isolated_home(Path(folder)) as home:
            env = {**cluster.env, "RUNYARD_HOME": str(home), "HOME": folder}
            for name, words in _FORMS.items():
                share, tasks = _measure(cluster, env, project, words)
                worst = min(worst, share)
                print(
                    f"{name}: {share:.1%} of the slots' time in trials ({tasks} tasks)", flush=True
                )
        bare = _measure_bare(cluster, trials, seconds)
        print(f"bare sbatch, a task a trial, {SLOTS} at once: {bare:.1%}")
    return 0 if worst >= LIMIT else 1


def _measure(
    cluster: SlurmCluster, env: dict[str, str], project: Path, words: tuple[str, ...]
) -> tuple[float, int]:
    said = json.loads(
        _runyard(env, project, "farm", "--json", "tasks.txt", "--on", "slurm", *words)
    )
    (job,) = said["jobs"]
    records = cluster.wait_for(job["job_id"], FINAL_STATES, timeout=_PATIENCE)
    lasted = sum(_lasted(record) for record in records)
    slots = SLOTS / len(records)
    shown = json.loads(_runyard(env, project, "show", "--json", said["sweep"]))
    in_trials = sum(trial["seconds"] for trial in shown["all_trials"])
    return in_trials / (lasted * slots), len(records)


def _measure_bare(cluster: SlurmCluster, trials: int, seconds: float) -> float:
    array = f"--array=1-{trials}%{SLOTS}"
    job = cluster.submit(f"sleep {seconds:g}", array, "--cpus-per-task=2", "--output=/dev/null")
    records = cluster.wait_for(job, FINAL_STATES, timeout=_PATIENCE)
    begin = min(_time(record["StartTime"]) for record in records)
    end = max(_time(record["EndTime"]) for record in records)
    return trials * seconds / ((end - begin) * SLOTS)


def _lasted(record: dict[str, str]) -> float:
    return _time(record["EndTime"]) - _time(record["StartTime"])


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _runyard(env: dict[str, str], project: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "runyard", *words],
        env=env, cwd=project, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


if __name__ == "__main__":
    time.tzset()
    sys.exit(main())
