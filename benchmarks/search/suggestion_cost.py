"""What a suggestion costs when results have come in, and what early stopping costs a report.

    python -m benchmarks.search.suggestion_cost [--results 100 500 1000] [--times 20]

CPU time, so that what else the machine does matters little: of one suggestion over eight parameters
with 16 trials pending, the median of several, on one thread as in the server's search process.
The first after every n/20 results chooses the model's hyper-parameters anew, which is the largest
of them and told by itself. Beside them stands a random draw, the floor.
"""

# ruff: noqa: E402  (what numpy reads once is set before it)

from __future__ import annotations

import argparse
import os
import statistics
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

from benchmarks.search.tasks import among, integer, log, uniform
from runyard.search.early_terminate import Asha, Hyperband
from runyard.search.engines.choose import make_engine
from runyard.search.engines.result import Result
from runyard.search.space import Point, Space
from runyard.search.stopping.choose import make_stopper
from runyard.search.sweep import read_sweep

METHODS = ("random", "bayes", "tpe", "cmaes")
PARAMETERS = {
    **{f"x{index}": uniform(0, 1) for index in range(4)},
    "lr": log(1e-5, 1.0),
    "decay": log(1e-6, 0.1),
    "layers": integer(1, 8),
    "kind": among("relu", "gelu", "tanh"),
}
PENDING = 16
STOPPED_TRIALS, EPOCHS = 1000, 27


def space() -> Space:
    sweep, problems = read_sweep({"method": "random", "parameters": PARAMETERS, "program": "t.py"})
    assert sweep is not None, problems
    return sweep.space


def value_of(point: Point) -> float:
    return float(sum((float(place or 0.0) - 0.3) ** 2 for place in point))


def measure(method: str, results: int, times: int) -> tuple[float, float]:
    """Milliseconds of the dearest suggestion and of the median one."""
    of = space()
    rng = np.random.default_rng(results)
    points = [of.draw(rng) for _ in range(results + PENDING)]
    engine = make_engine(method, of, seed=1)
    engine.add([Result(n, point, (value_of(point),)) for n, point in enumerate(points[:results])])
    took = []
    for number in range(times):
        began = time.process_time()
        engine.suggest(points[results:], 1, results + number)
        took.append((time.process_time() - began) * 1e3)
    return max(took), statistics.median(took)


def measure_stopping(rule: Asha | Hyperband) -> float:
    """Microseconds a report, over all reports of a thousand trials."""
    stopper = make_stopper(rule, maximize=False)
    curves = np.random.default_rng(0).random((STOPPED_TRIALS, EPOCHS))
    began, reports = time.process_time(), 0
    for epoch in range(EPOCHS):
        for trial in range(STOPPED_TRIALS):
            stopper.report(trial, epoch + 1, float(curves[trial, epoch]))
            reports += 1
    return (time.process_time() - began) / reports * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", nargs="+", type=int, default=[100, 500, 1000])
    parser.add_argument("--times", type=int, default=20)
    options = parser.parse_args()
    print("| method | results | the dearest, ms of CPU | the median |")
    print("| --- | --- | --- | --- |")
    for method in METHODS:
        measure(method, 30, options.times)  # What is loaded when it is first needed.
        for results in options.results:
            dearest, median = measure(method, results, options.times)
            print(f"| {method} | {results} | {dearest:.1f} | {median:.1f} |", flush=True)
    for name, rule in (("hyperband", Hyperband(min_iter=1)), ("asha", Asha(min_iter=1))):
        print(f"a report under {name}: {measure_stopping(rule):.1f} µs of CPU")


if __name__ == "__main__":
    main()
