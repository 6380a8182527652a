"""What early stopping saves, and what it loses, on real learning curves.

    python -m benchmarks.search.stopping --curves FILE.npy

240 trials on 16 workers, 20 repeats; every report is judged. Device time and makespan are shares of
what they are without stopping; the loss is in error rate, best found against best of all.
"""

from __future__ import annotations

import argparse
import heapq
from pathlib import Path

import numpy as np
from benchmarks.search.curves import learning_curves

from runyard.search.early_terminate import Asha, EarlyTerminate, Hyperband
from runyard.search.stopping.choose import make_stopper
from runyard.search.stopping.decision import Decision

TRIALS, WORKERS, REPEATS = 240, 16, 20

RULES: dict[str, EarlyTerminate | None] = {
    "none": None,
    "hyperband, loose": Hyperband(min_iter=3, eta=3, strict=False),
    "hyperband, strict": Hyperband(min_iter=3, eta=3),
    "ASHA, stopping": Asha(min_iter=3, max_iter=81, eta=3),
    "ASHA, promotion": Asha(min_iter=3, max_iter=81, eta=3, form="promotion"),
    "ASHA, stopping, from 1": Asha(min_iter=1, max_iter=81, eta=3),
    "ASHA, promotion, from 1": Asha(min_iter=1, max_iter=81, eta=3, form="promotion"),
}


def play(curves: np.ndarray, rule: EarlyTerminate | None, seed: int) -> tuple[float, float, float]:
    """Device time, makespan and best value of one sweep."""
    rng = np.random.default_rng(seed)
    chosen = curves[rng.permutation(len(curves))[:TRIALS]]
    pace = rng.lognormal(0.0, 0.4, TRIALS)  # seconds an epoch
    stopper = make_stopper(rule, maximize=False) if rule is not None else None
    done = [0] * TRIALS
    events: list[tuple[float, int]] = []
    now, spent, best, fresh = 0.0, 0.0, 1.0, 0
    while True:
        while len(events) < WORKERS:
            trial = stopper.promotable() if stopper is not None else None
            if trial is not None and stopper is not None:
                stopper.resumed(trial)
            elif fresh < TRIALS:
                trial, fresh = fresh, fresh + 1
            else:
                break
            heapq.heappush(events, (now + pace[trial], trial))
        if not events:
            return spent, now, best
        now, trial = heapq.heappop(events)
        value = float(chosen[trial][done[trial]])
        done[trial] += 1
        spent += pace[trial]
        best = min(best, value)
        said = stopper.report(trial, done[trial], value) if stopper else Decision.GO_ON
        if said is Decision.GO_ON and done[trial] < curves.shape[1]:
            heapq.heappush(events, (now + pace[trial], trial))
        elif said is not Decision.PAUSE and stopper is not None:
            stopper.ended(trial)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--curves", type=Path, required=True)
    curves = learning_curves(parser.parse_args().curves)
    plain = np.array([play(curves, None, seed) for seed in range(REPEATS)])
    print("| rule | device time | makespan | loss ± standard error | worst loss |")
    print("| --- | --- | --- | --- | --- |")
    for name, rule in RULES.items():
        played = np.array([play(curves, rule, seed) for seed in range(REPEATS)])
        share = (played / plain).mean(axis=0)
        loss = played[:, 2] - plain[:, 2]
        error = loss.std(ddof=1) / REPEATS**0.5
        cells = f"{share[0]:.3f} | {share[1]:.3f} | {loss.mean():.4f} ± {error:.4f}"
        print(f"| {name} | {cells} | {loss.max():.4f} |")


if __name__ == "__main__":
    main()
