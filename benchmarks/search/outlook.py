"""How often a search says too early that nothing better is to be found.

    python -m benchmarks.search.outlook [--trials 120] [--workers 8] [--seeds 2] [TASK ...]

Sweeps of the comparison's and the fresh tasks by `bayes`, asked by the server's rules whether a new
setting beats the best by 1 %. It was too early if a later trial of the same sweep did. For a task
with noise, a trial counts with its value without noise.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from benchmarks.search.fresh import development, judgement
from benchmarks.search.our_searcher import OurSearcher
from benchmarks.search.simulate import simulate
from benchmarks.search.tasks import Task, tasks
from runyard.search.engines.bayes import BayesEngine
from runyard.search.worker import SHARE
from runyard.server.api.sweep_json import UNLIKELY
from runyard.server.sweeps.serving.suggestions import JUDGED_AFTER, JUDGED_SHARE, JUDGEMENTS

# Where the best value is 0, a hundredth of it is nothing, and nothing is said.
TASKS = [
    "branin",
    "hartmann6",
    "michalewicz5",
    "shekel4",
    "noisy-goldstein",
    "branches",
    "svr-diabetes",
    "svm-digits",
    "gbm-diabetes",
    "sgd-cancer",
    "tree-wine",
    "mlp-cancer",
    "ridge-diabetes",
    "valley-of-rates",
    "pairs-of-choices",
]


class Asked(OurSearcher):
    """Asks for the chance as often as the server does."""

    def __init__(self, task: Task, seed: int, workers: int) -> None:
        config = {"method": "bayes", "metric": {"name": "y"}, "parameters": task.parameters}
        super().__init__(config, seed, workers, "bayes")
        self.judged = 0
        self.chances: list[float] = []
        self.spoke_at: int | None = None

    def tell(self, trial: int, value: float) -> None:
        super().tell(trial, value)
        due = self.results >= self.judged + max(JUDGED_AFTER, JUDGED_SHARE * self.judged)
        if self.spoke_at is not None or not due:
            return
        self.judged = self.results
        assert isinstance(self.engine, BayesEngine)
        chance = self.engine.chance_of_better(SHARE)
        if chance is not None:
            self.chances = [*self.chances, chance][-JUDGEMENTS:]
        if len(self.chances) == JUDGEMENTS and max(self.chances) <= UNLIKELY:
            self.spoke_at = self.results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", nargs="*", default=TASKS)
    parser.add_argument("--trials", type=int, default=120)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args()
    known = {**tasks(), **development(), **judgement()}
    sweeps = early = 0
    spoke: list[float] = []
    for task, seed in ((known[name], seed) for name in args.task for seed in range(args.seeds)):
        sweeps += 1
        for at, then, last in judge(task, seed, args.workers, args.trials):
            is_early = last < then - SHARE * abs(then)
            early += is_early
            spoke.append(1 - at / args.trials)
            more = f"TOO EARLY: {last:.4g} came later" if is_early else f"{last:.4g} in the end"
            print(
                f"{task.name:20} seed {seed}  after {at:3} trials at {then:.4g}; {more}", flush=True
            )
    left = sum(spoke) / len(spoke) if spoke else 0.0
    print(
        f"{len(spoke)} of {sweeps} sweeps spoke, {early} too early, {left:.0%} of the trials left"
    )


def judge(task: Task, seed: int, workers: int, trials: int) -> Iterator[tuple[int, float, float]]:
    """After how many trials it spoke, the best value then, and at the end."""
    searcher = Asked(task, seed, workers)
    ended = simulate(searcher, task.value, workers, trials, seed)
    values = [task.noiseless(trial.settings) for trial in ended]
    if searcher.spoke_at is not None:
        yield searcher.spoke_at, min(values[: searcher.spoke_at]), min(values)


if __name__ == "__main__":
    main()
