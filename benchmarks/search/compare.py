"""Normalised regret of our engines against W&B's open engine.

    python -m benchmarks.search.compare run --results FILE \\
        --wandb-python PYTHON --wandb-source FOLDER
    python -m benchmarks.search.compare report --results FILE

`run` appends one line a (task, engine, workers, seed) to FILE and passes over those that are there,
so it can be stopped and started again. Regret is (best found - optimum) over (median of random
settings - optimum).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy, which reads them once

import numpy as np  # noqa: E402

from benchmarks.search import fresh, held_out, unseen  # noqa: E402
from benchmarks.search.simulate import simulate  # noqa: E402
from benchmarks.search.tasks import Task, tasks  # noqa: E402

TRIALS = 100
FLOOR = 0.001
SETS: dict[str, Callable[[], dict[str, Task]]] = {
    "main": tasks,
    "held-out": held_out.tasks,
    "development": fresh.development,
    "fresh": fresh.judgement,
    "unseen": unseen.tasks,
}


def all_tasks() -> dict[str, Task]:
    return {name: task for tasks_of in SETS.values() for name, task in tasks_of().items()}


def config_of(task: Task) -> dict[str, Any]:
    return {
        "method": "bayes",
        "metric": {"name": "value", "goal": "minimize"},
        "parameters": task.parameters,
    }


def searcher(engine: str, task: Task, workers: int, seed: int, options: argparse.Namespace) -> Any:
    if engine == "wandb":
        from benchmarks.search.wandb_searcher import WandbSearcher

        return WandbSearcher(options.wandb_python, options.wandb_source, config_of(task), seed)
    from benchmarks.search.our_searcher import OurSearcher

    return OurSearcher(config_of(task), seed, workers, engine)


def read_records(file: Path) -> list[dict[str, Any]]:
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines() if line.endswith("}")]


def run(options: argparse.Namespace) -> None:
    every = all_tasks()
    chosen = options.tasks or list(SETS[options.set]())
    done = {
        (record["task"], record["engine"], record["workers"], record["seed"])
        for record in read_records(options.results)
    }
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for name in chosen:
            for workers in options.workers:
                for engine in options.engines:
                    if (name, engine, workers, seed) in done:
                        continue
                    began = time.process_time()
                    taking_part = searcher(engine, every[name], workers, seed, options)
                    task = every[name]
                    trials = simulate(taking_part, task.value, workers, options.trials, seed)
                    record = {"task": name, "engine": engine, "workers": workers, "seed": seed}
                    record["cpu"] = round(time.process_time() - began, 2)
                    record["values"] = [trial.value for trial in trials]
                    if task.truth is not None:
                        record["truths"] = [task.truth(trial.settings) for trial in trials]
                    with options.results.open("a") as file:
                        file.write(json.dumps(record) + "\n")


def best_of(record: dict[str, Any]) -> float:
    """The best value; for a noisy task, the value without noise of the trial that looks best."""
    values = record["values"]
    return float(record.get("truths", values)[int(np.argmin(values))])


def scale_of(task: Task, found: float, cache: Path) -> tuple[float, float]:
    """(optimum, median of 400 random settings); kept on disk, since some tasks train for it."""
    known = json.loads(cache.read_text()) if cache.exists() else {}
    if task.name not in known:
        from runyard.search.sweep import read_sweep

        sweep, _ = read_sweep(config_of(task))
        assert sweep is not None
        rng = np.random.default_rng(12345)
        drawn = [task.noiseless(sweep.space.decode(sweep.space.draw(rng))) for _ in range(400)]
        known[task.name] = {"median": float(np.median(drawn)), "best": float(np.min(drawn))}
        cache.write_text(json.dumps(known))
    kept = known[task.name]
    optimum = task.optimum if task.optimum is not None else min(kept["best"], found)
    return optimum, kept["median"]


def report(options: argparse.Namespace) -> None:
    every = all_tasks()
    records = read_records(options.results)
    names = [name for name in every if any(record["task"] == name for record in records)]
    regrets: dict[tuple[str, str, int], np.ndarray] = {}
    for name in names:
        here = [record for record in records if record["task"] == name]
        found = min(best_of(record) for record in here)
        optimum, median = scale_of(every[name], found, options.results.with_suffix(".scales.json"))
        for engine, workers in sorted({(record["engine"], record["workers"]) for record in here}):
            regrets[name, engine, workers] = np.array(
                [
                    np.clip((best_of(record) - optimum) / (median - optimum), 0, 1)
                    for record in sorted(here, key=lambda record: record["seed"])
                    if (record["engine"], record["workers"]) == (engine, workers)
                    and record["seed"] < options.first_seed + options.seeds
                ]
            )
    for workers in options.workers:
        engines = [e for e in options.engines if any((n, e, workers) in regrets for n in names)]
        print(f"\n{workers} workers: mean regret ± standard error (seeds)")
        print("| task | " + " | ".join(engines) + " |")
        print("| --- |" + " --- |" * len(engines))
        logs: dict[str, list[float]] = {engine: [] for engine in engines}
        for name in names:
            cells = []
            against = regrets.get((name, "wandb", workers))
            for engine in engines:
                mine = regrets.get((name, engine, workers))
                if mine is None or not len(mine):
                    cells.append("-")
                    continue
                error = mine.std(ddof=1) / np.sqrt(len(mine)) if len(mine) > 1 else 0.0
                mark = ""
                if against is not None and len(against) > 1:
                    logs[engine].append(
                        float(np.log(max(mine.mean(), FLOOR) / max(against.mean(), FLOOR)))
                    )
                    spread = np.hypot(error, against.std(ddof=1) / np.sqrt(len(against)))
                    mark = " worse!" if mine.mean() - against.mean() > 2 * spread else ""
                cells.append(f"{mine.mean():.4f} ± {error:.4f} ({len(mine)}){mark}")
            print(f"| {name} | " + " | ".join(cells) + " |")
        means = [f"{np.exp(np.mean(logs[e])):.3f}" if logs[e] else "-" for e in engines]
        print("| geometric mean, wandb = 1 | " + " | ".join(means) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["run", "report"])
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--engines", nargs="+", default=["wandb", "bayes"])
    parser.add_argument("--tasks", nargs="+")
    parser.add_argument("--trials", type=int, default=TRIALS)
    for name in ("held-out", "development", "fresh", "unseen"):
        parser.add_argument(
            f"--{name}", dest="set", action="store_const", const=name, default="main"
        )
    parser.add_argument("--workers", nargs="+", type=int, default=[16, 1])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--wandb-python", default=sys.executable)
    parser.add_argument("--wandb-source", default="")
    options = parser.parse_args()
    {"run": run, "report": report}[options.what](options)


if __name__ == "__main__":
    main()
