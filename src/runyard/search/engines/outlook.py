"""How likely it is that a new setting beats the best one by more than a small share.

The question behind "stop this sweep?". It is answered by the model of `bayes`, so it is as good as
that model: where the function has basins that no trial has met, the model does not know of them.
"""

from __future__ import annotations

import numpy as np

from runyard.search.engines.acquisition import BEST, Acquisition, maximise
from runyard.search.engines.coordinates import Array, Coordinates
from runyard.search.engines.gaussian import Kernel, Posterior
from runyard.search.engines.warping import warp

LEAST_RESULTS, RESULTS_PER_PARAMETER = 30, 5


def is_enough(results: int, parameters: int) -> bool:
    """Whether a model of so many results can say anything."""
    return results >= max(LEAST_RESULTS, RESULTS_PER_PARAMETER * parameters)


def chance_of_better(
    kernel: Kernel, x: Array, values: Array, coordinates: Coordinates, share: float, seed: int
) -> float:
    """The chance at the most promising setting; values are to be minimised."""
    rng = np.random.default_rng([seed, len(values), 3])
    none = np.empty((0, coordinates.count))
    known = Posterior(kernel, x, warp(values), none, coordinates.is_categorical).predict(x)[0]
    # The lowest prediction at a trial, as a value: with noise, the best value may be luck.
    order = np.argsort(values, kind="stable")
    best = float(np.interp(known.min(), warp(values)[order], values[order]))
    goal = best - share * abs(best)
    warped = warp(np.append(values, goal))
    posterior = Posterior(kernel, x, warped[:-1], none, coordinates.is_categorical)
    candidates = maximise(
        Acquisition(posterior, float(warped[-1]), []),
        coordinates,
        x[np.argsort(known, kind="stable")[:BEST]],
        rng,
    )
    mean, deviation = posterior.predict(np.array(candidates))
    from scipy.special import ndtr

    return float(ndtr((warped[-1] - mean) / deviation).max())
