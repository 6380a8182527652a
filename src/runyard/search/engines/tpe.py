"""Tree-structured Parzen estimator from Optuna; several metrics and constraints too.

The study is in memory and has only finished trials. The sampler sees pending ones as running trials
after all others, whenever they were suggested. So its answer does not depend on earlier calls.
For several metrics this is Optuna's multi-objective form: unlike NSGA-II it uses every result at
once and has no generations, which suits a few hundred trials on workers that end at random.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from runyard.search.engines.coordinates import Array, Coordinates
from runyard.search.engines.distinct import Taken
from runyard.search.engines.result import LARGEST, Result
from runyard.search.space import Point, Space

if TYPE_CHECKING:
    import optuna

START = 10  # results before which points are quasi-random
CANDIDATES = 32
TRIES = 4  # draws before a repeated point is replaced by a random one


class TpeEngine:
    def __init__(self, space: Space, seed: int, metrics: int = 1) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.optuna = optuna
        self.coordinates = Coordinates(space)
        self.seed = seed
        self.metrics = max(1, metrics)
        self.taken = Taken(self.coordinates)
        self.usable = 0
        self.storage = pending_last()
        self.study = optuna.create_study(
            storage=self.storage, directions=["minimize"] * self.metrics
        )
        study = self.storage.get_study_id_from_name(self.study.study_name)
        self.asking = self.storage.create_new_trial(study)  # in whose name the sampler is asked
        self.finished = 0
        self.distributions = self.make_distributions()

    def make_distributions(self) -> dict[str, optuna.distributions.BaseDistribution]:
        distributions: dict[str, Any] = {}
        for index in range(self.coordinates.count):
            categories = int(self.coordinates.categories[index])
            if not self.coordinates.is_categorical[index]:
                distributions[str(index)] = self.optuna.distributions.FloatDistribution(0.0, 1.0)
            elif categories > 1:
                distributions[str(index)] = self.optuna.distributions.CategoricalDistribution(
                    list(range(categories))
                )
        return distributions

    def parameters(self, point: Point) -> dict[str, Any]:
        return {
            name: int(point[int(name)])
            if self.coordinates.is_categorical[int(name)]
            else min(1.0, max(0.0, float(point[int(name)])))
            for name in self.distributions
        }

    def add(self, results: Sequence[Result]) -> None:
        self.taken.add(result.point for result in results)
        for result in results:
            values = [LARGEST] * self.metrics  # failed: worse than any, since only ranks count
            if result.is_usable and len(result.values) == self.metrics:
                values = [float(np.clip(value, -LARGEST, LARGEST)) for value in result.values]
                self.usable += 1
            self.store(result.point, values, result.constraints)

    def store(self, point: Point, values: list[float], constraints: Sequence[float]) -> None:
        bounds = {
            str(index): value if value == value else LARGEST
            for index, value in enumerate(constraints)
        }
        self.finished += 1
        self.study.add_trial(
            self.optuna.trial.create_trial(
                values=values,
                params=self.parameters(point),
                distributions=self.distributions,
                constraints=bounds,
            )
        )

    def suggest(self, pending: Sequence[Point], count: int, number: int) -> list[Point]:
        made: list[Point] = []
        for index in range(count):
            rng = np.random.default_rng([self.seed, number + index, 1])
            also = self.taken.snapped([*pending, *made])
            rows = self.rows([*pending, *made], number + index, rng)
            made.append(self.taken.first_fresh(rows, also, rng))
        return made

    def rows(
        self, pending: Sequence[Point], number: int, rng: np.random.Generator
    ) -> Iterator[Array]:
        if self.usable < START or not self.distributions:
            yield self.coordinates.sobol(1, [self.seed], number)[0]
            return
        for _ in range(TRIES):
            yield self.row(pending, int(rng.integers(2**32 - 1)))

    def row(self, pending: Sequence[Point], seed: int) -> Array:
        sampler = self.optuna.samplers.TPESampler(
            seed=seed,
            multivariate=True,
            constant_liar=True,
            n_ei_candidates=CANDIDATES,
            n_startup_trials=0,
        )
        self.storage.pending = [self.running(point, at) for at, point in enumerate(pending)]
        asking = self.storage.get_trial(self.asking)
        drawn = sampler.sample_relative(self.study, asking, self.distributions)
        row = np.zeros(self.coordinates.count)
        for name, value in drawn.items():
            row[int(name)] = float(value)
        return np.asarray(self.coordinates.snap(row[None])[0])

    def running(self, point: Point, place: int) -> optuna.trial.FrozenTrial:
        trial = self.optuna.trial.create_trial(
            state=self.optuna.trial.TrialState.RUNNING,
            params=self.parameters(point),
            distributions=self.distributions,
        )
        trial.number = 1 + self.finished + place
        return trial


def pending_last() -> Any:
    """A storage that shows pending trials, which it does not store, after those that it stores."""
    import optuna

    class PendingLast(optuna.storages.InMemoryStorage):
        pending: Sequence[optuna.trial.FrozenTrial] = ()

        def get_all_trials(
            self, study_id: int, deepcopy: bool = True, states: Container[Any] | None = None
        ) -> list[optuna.trial.FrozenTrial]:
            trials = super().get_all_trials(study_id, deepcopy, states)
            shown = states is None or optuna.trial.TrialState.RUNNING in states
            return [*trials, *self.pending] if shown else trials

    return PendingLast()
