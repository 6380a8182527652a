"""The engine of a method."""

from __future__ import annotations

from runyard.search.engines.bayes import BayesEngine
from runyard.search.engines.draws import QuasiRandomEngine, RandomEngine
from runyard.search.engines.evolution import EvolutionEngine
from runyard.search.engines.result import Engine
from runyard.search.engines.tpe import TpeEngine
from runyard.search.space import Space


def make_engine(method: str, space: Space, seed: int, metrics: int = 1) -> Engine:
    """An engine for `bayes`, `tpe`, `cmaes`, `qmc` or `random`.

    With several metrics, the methods that learn are the multi-objective TPE.
    """
    if method == "random":
        return RandomEngine(space, seed)
    if method == "qmc":
        return QuasiRandomEngine(space, seed)
    if method == "tpe" or (metrics > 1 and method in ("bayes", "cmaes")):
        return TpeEngine(space, seed, metrics)
    if method == "bayes":
        return BayesEngine(space, seed)
    if method == "cmaes":
        return EvolutionEngine(space, seed)
    raise ValueError(f"no engine for method {method!r}")
