"""New settings: the next of the grid, a random one, or one that was prepared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runyard.search.by_number import draws, index_of, point_at
from runyard.search.names import free_name, trial_name
from runyard.search.space import Point
from runyard.search.sweep import Sweep
from runyard.search.tasks import NUMBER
from runyard.server.sweeps.ledger.new_trials import Drawn
from runyard.server.sweeps.ledger.trials import IsTaken

# Their settings follow from a number alone; others need to know of results.
BY_NUMBER = ("grid", "random")


class Drawing:
    """Draws the settings of one sweep's claims. Prepared points are taken in their order."""

    def __init__(self, sweep: Sweep, seed: int, prepared: Sequence[Point] = ()) -> None:
        self._sweep = sweep
        self._seed = seed
        self._prepared = list(prepared)

    @property
    def left(self) -> list[Point]:
        """Prepared points that nobody took."""
        return self._prepared

    def setting(self, number: int) -> Drawn | None:
        space = self._sweep.space
        if self._sweep.method == "grid":
            point = point_at(space, number)
            tasks = self._sweep.options.tasks
            return Drawn(None, tasks[number].settings(point[NUMBER]) if tasks else point)
        if self._sweep.method == "random":
            drawn = space.place(draws(self._seed, number, len(space.leaves)))
        elif self._prepared:
            drawn = self._prepared.pop(0)
        else:
            return None
        return Drawn(drawn, space.decode(drawn))

    def with_seed(self, settings: Mapping[str, Any], seed: int) -> dict[str, Any]:
        options = self._sweep.options
        if not options.seeds:
            return dict(settings)
        return {**settings, options.seed_parameter: options.seeds[seed]}

    def name(self, settings: Mapping[str, Any], is_taken: IsTaken) -> str:
        options = self._sweep.options
        if options.tasks:
            place = index_of(self._sweep.space, settings)
            assert place is not None
            return free_name(options.tasks[place].name, is_taken)
        swept = self._sweep.space.swept(settings)
        if options.seeds:
            swept[options.seed_parameter] = settings[options.seed_parameter]
        return trial_name(swept, is_taken, options.name)
