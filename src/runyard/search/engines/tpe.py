"""Tree-structured Parzen estimator from Optuna; several metrics and constraints too.

The study lives in memory and holds finished trials alone. Pending ones are put into slots that stay
open: slots are waiting while nobody needs them, so the study does not grow by what was asked.
For several metrics this is Optuna's multi-objective form: unlike NSGA-II it uses every result at once,
without generations, which is what a few hundred trials on workers that end at random need.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from runyard.search.engines.coordinates import Array, Coordinates
from runyard.search.engines.distinct import Taken
from runyard.search.engines.result import Result
from runyard.search.space import Point, Space

if TYPE_CHECKING:
    import optuna

START = 10  # results before which points are quasi-random
CANDIDATES = 32
LARGEST = 1e100  # products of a few of them stay finite


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
        self.storage = optuna.storages.InMemoryStorage()
        self.study = optuna.create_study(
            storage=self.storage, directions=["minimize"] * self.metrics
        )
        self.study_id = self.storage.get_study_id_from_name(self.study.study_name)
        self.slots: list[int] = []
        self.held: list[Point | None] = []  # what stands in each slot
        self.distributions = self.make_distributions()

    def make_distributions(self) -> dict[str, optuna.distributions.BaseDistribution]:
        found: dict[str, Any] = {}
        for index in range(self.coordinates.count):
            categories = int(self.coordinates.categories[index])
            if not self.coordinates.is_categorical[index]:
                found[str(index)] = self.optuna.distributions.FloatDistribution(0.0, 1.0)
            elif categories > 1:
                found[str(index)] = self.optuna.distributions.CategoricalDistribution(
                    list(range(categories))
                )
        return found

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
            also = {self.coordinates.space.snap(point) for point in [*pending, *made]}
            rows = self.rows([*pending, *made], number + index, rng)
            made.append(self.taken.first_fresh(rows, also, rng))
        return made

    def rows(self, pending: Sequence[Point], number: int, rng: np.random.Generator) -> list[Array]:
        if self.usable < START or not self.distributions:
            return [self.coordinates.sobol(1, [self.seed], number)[0]]
        return [self.row(pending, int(rng.integers(2**32 - 1))) for _ in range(3)]

    def row(self, pending: Sequence[Point], seed: int) -> Array:
        sampler = self.optuna.samplers.TPESampler(
            seed=seed,
            multivariate=True,
            constant_liar=True,
            n_ei_candidates=CANDIDATES,
            n_startup_trials=0,
        )
        self.open_slots(pending)
        asking = self.storage.get_trial(self.slots[len(pending)])
        drawn = sampler.sample_relative(self.study, asking, self.distributions)
        row = np.zeros(self.coordinates.count)
        for name, value in drawn.items():
            row[int(name)] = float(value)
        return self.coordinates.snap(row[None])[0]

    def open_slots(self, pending: Sequence[Point]) -> None:
        """One running trial for each pending point, and one for the asking."""
        states = self.optuna.trial.TrialState
        while len(self.slots) <= len(pending):
            self.slots.append(self.storage.create_new_trial(self.study_id))
            self.held.append(None)
        for index, slot in enumerate(self.slots):
            wanted = states.RUNNING if index <= len(pending) else states.WAITING
            if self.storage.get_trial(slot).state != wanted:
                self.storage.set_trial_state_values(slot, wanted)
            if index < len(pending) and self.held[index] != pending[index]:
                self.held[index] = pending[index]
                for name, value in self.parameters(pending[index]).items():
                    kind = self.distributions[name]
                    self.storage.set_trial_param(slot, name, kind.to_internal_repr(value), kind)
