"""How long `runyard farm --on slurm` takes for many trials, beside a bare `sbatch` of the array.

    python -m benchmarks.submit [ROUNDS]

On a real Slurm of its own, with a state folder of its own; the two take turns. The time that
runyard takes over sbatch is everything: reading a thousand lines, the plan, the copy of the code,
the sweep in the server, the job's record. Also told: the command's own CPU time, which a busy
machine does not stretch, and the files that each submission leaves behind.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.slurm.cluster import SlurmCluster

from benchmarks.state_folder import isolated_home

SIZES = (1_000, 3_000)
_HELD = "--begin=now+1day"  # Nothing is to start: it would take the machine from what is measured.


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory() as folder, SlurmCluster() as cluster:
        project = Path(folder) / "project"
        project.mkdir()
        for number in range(200):
            (project / f"module{number}.py").write_text(f"VALUE = {number}\n" * 50)
        with isolated_home(Path(folder)) as home:
            env = {**cluster.env, "RUNYARD_HOME": str(home), "HOME": folder}
            for size in SIZES:
                tasks = project / f"tasks{size}.txt"
                tasks.write_text("".join(f"true --seed {one}\n" for one in range(size)))
                _measure(size, rounds, env, project, home)
    return 0


def _measure(size: int, rounds: int, env: dict[str, str], project: Path, home: Path) -> None:
    words = ["farm", f"tasks{size}.txt", "--on", "slurm", "--yes", f"--sbatch={_HELD}"]
    ours, bare, files, cpu = [], [], [], []
    _timed([sys.executable, "-m", "runyard", *words], env, project)  # The server starts.
    _cancel(env)
    for _ in range(rounds):
        before = _count(home)
        used = _cpu()
        ours.append(_timed([sys.executable, "-m", "runyard", *words], env, project))
        cpu.append(_cpu() - used)
        files.append(_count(home) - before)
        _cancel(env)
        bare.append(
            sum(
                _timed(["sbatch", _HELD, f"--array=1-{part}", "--wrap=true"], env, project)
                for part in _parts(size)
            )
        )
        _cancel(env)
    over = statistics.median(ours) - statistics.median(bare)
    print(
        f"{size} trials: runyard {statistics.median(ours):.2f} s ({min(ours):.2f} to "
        f"{max(ours):.2f}), bare sbatch {statistics.median(bare):.2f} s: {over:.2f} s over it, "
        f"{statistics.median(cpu):.2f} s of CPU; "
        f"{max(files)} new files at most",
        flush=True,
    )


def _parts(size: int) -> list[int]:
    return [min(1_000, size - begin) for begin in range(0, size, 1_000)]


def _timed(words: list[str], env: dict[str, str], folder: Path) -> float:
    begun = time.perf_counter()
    subprocess.run(words, env=env, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - begun


def _cancel(env: dict[str, str]) -> None:
    subprocess.run(["scancel", "--me"], env=env, check=True)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _count(home: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(home))


if __name__ == "__main__":
    sys.exit(main())
