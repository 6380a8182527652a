"""What a sweep says, typed; and that no data at all makes the reader fall over."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.search.forms import DISTRIBUTIONS
from runyard.search.options import OPTION_KEYS
from runyard.search.sweep import (
    KEYS,
    Asha,
    Constraint,
    Hyperband,
    Metric,
    Options,
    Sweep,
    read_sweep,
)

LR = {"lr": {"min": 0.001, "max": 0.1}}


def sweep_of(**keys: Any) -> Sweep:
    sweep, problems = read_sweep({"method": "random", "parameters": LR, **keys})
    assert sweep is not None, problems
    return sweep


def test_what_is_not_written_has_w_and_b_s_defaults() -> None:
    sweep = sweep_of()
    assert sweep == Sweep("random", sweep.space)
    assert sweep.options == Options()
    assert sweep.options.retries == {"program": 0, "memory": 1, "node": 5}
    assert sweep_of(metric={"name": "loss"}).metrics == (Metric("loss", "minimize"),)


def test_a_metric_says_what_to_do_with_runs_that_failed() -> None:
    metric = {"name": "acc", "goal": "maximize", "target": 1, "impute": "best"}
    read = sweep_of(metric={**metric, "impute_while_running": "latest"}).metrics
    assert read == (Metric("acc", "maximize", 1, "best", "latest"),)
    _, problems = read_sweep(
        {
            "method": "bayes",
            "metric": {**metric, "impute_while_running": "latest"},
            "parameters": {"x": {"min": 0.0, "max": 1.0}},
        }
    )
    assert [problem.message for problem in problems] == ["impute_while_running has no effect here"]
    for off in ("false", False):
        assert sweep_of(metric={**metric, "impute_while_running": off}).metrics == (
            Metric("acc", "maximize", 1, "best", None),
        )


def test_our_method_stands_beside_w_and_b_s() -> None:
    sweep = sweep_of(method="bayes", metric={"name": "loss"}, runyard={"method": "tpe"})
    assert sweep.method == "tpe"


def test_several_metrics_and_constraints() -> None:
    sweep = sweep_of(
        runyard={
            "metrics": [{"name": "loss"}, {"name": "size"}],
            "constraints": [{"metric": "latency", "max": 10}, {"metric": "recall", "min": 0.8}],
        }
    )
    assert [metric.name for metric in sweep.metrics] == ["loss", "size"]
    assert sweep.constraints == (
        Constraint("latency", 10, "max"),
        Constraint("recall", 0.8, "min"),
    )
    assert [constraint.excess(1) for constraint in sweep.constraints] == pytest.approx([-9, -0.2])


def test_early_stopping_is_w_and_b_s_or_ours() -> None:
    metric = {"name": "loss"}
    hyperband = {"type": "hyperband", "max_iter": 27, "s": 2}
    assert sweep_of(metric=metric, early_terminate=hyperband).early_terminate == Hyperband(
        None, 27, 2, 3, True
    )
    asha = {"type": "asha", "max_iter": 81, "form": "promotion", "step": "epoch"}
    both = sweep_of(metric=metric, early_terminate=hyperband, runyard={"early_terminate": asha})
    assert both.early_terminate == Asha(1, 81, 3, "promotion", "epoch")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (3, {"program": 3, "memory": 3, "node": 5}),
        (9, {"program": 9, "memory": 9, "node": 9}),
        ({"memory": 4}, {"program": 0, "memory": 4, "node": 5}),
    ],
)
def test_retries_are_a_number_or_one_for_each_cause(written: Any, read: dict[str, int]) -> None:
    assert sweep_of(runyard={"retries": written}).options.retries == read


@pytest.mark.parametrize(("written", "read"), [(3, (0, 1, 2)), ([7, 9], (7, 9))])
def test_seeds_are_a_number_or_a_list(written: Any, read: tuple[int, ...]) -> None:
    assert sweep_of(runyard={"seeds": written}).options.seeds == read


def test_a_client_that_named_the_distribution_may_mix_its_bounds() -> None:
    filled = {"min": 0, "max": 0.1, "distribution": "uniform"}
    sweep, problems = read_sweep({"method": "random", "parameters": {"x": filled}})
    assert sweep is not None
    assert not problems


def test_constants_and_lists_of_one_are_not_searched() -> None:
    space = sweep_of(parameters={"a": {"value": 1}, "b": {"values": [2]}, **LR}).space
    assert [leaf.name for leaf in space.leaves] == ["lr"]
    assert space.decode((0.5,)) == {"a": 1, "b": 2, "lr": 0.0505}


def test_groups_are_flat_for_the_search_and_nested_for_the_run() -> None:
    parameters = {"opt": {"parameters": {"lr": LR["lr"], "name": {"values": ["a", "b"]}}}}
    space = sweep_of(parameters=parameters).space
    assert [leaf.name for leaf in space.leaves] == ["opt/lr", "opt/name"]
    settings = space.decode((0.5, 1))
    assert settings == {"opt": {"lr": 0.0505, "name": "b"}}
    assert space.encode(settings) == pytest.approx((0.5, 1))
    assert space.encode({"opt": {"lr": 0.05}}) is None


_words = st.sampled_from(
    [
        *KEYS,
        *OPTION_KEYS,
        *DISTRIBUTIONS,
        *("value", "values", "min", "max", "q", "mu", "sigma", "a", "b", "probabilities"),
        *("name", "goal", "target", "impute", "type", "min_iter", "max_iter", "s", "eta", "step"),
        *("hyperband", "asha", "grid", "bayes", "tpe", "minimize", "custom", "lr", "metric"),
        *("engine", "source", "wandb", "form", "${program}", "{lr}", "{", "on"),
    ]
)
_scalars = st.one_of(
    _words, st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)
)
_keys = st.one_of(_words, _words, _words, st.integers(), st.none(), st.booleans(), st.text())
_anything = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_keys, inner, max_size=6),
    max_leaves=30,
)
_sweeps = st.fixed_dictionaries(
    {
        "method": st.sampled_from(["grid", "random", "bayes", "custom"]) | _anything,
        "parameters": st.dictionaries(
            st.sampled_from(["lr", "bs", "x y"]),
            st.dictionaries(_words, _scalars | st.lists(_scalars, max_size=3), max_size=4)
            | _anything,
            max_size=3,
        ),
    },
    optional={"metric": _anything, "runyard": st.dictionaries(_words, _anything, max_size=4)},
)


@given(_anything | _sweeps)
def test_no_data_makes_the_reader_fall_over(data: Any) -> None:
    sweep, problems = read_sweep(data)
    assert (sweep is None) == any(problem.is_error for problem in problems)
    for problem in problems:
        assert problem.message
        assert problem.mend
        assert "\n" not in str(problem)
        assert len(str(problem)) < 1000
    if sweep is not None:
        sweep.space.decode([0.5 if not leaf.categories else 0 for leaf in sweep.space.leaves])


def test_a_name_with_a_place_for_a_parameter_where_there_is_none_is_told() -> None:
    config = {"method": "random", "program": "t.py", "parameters": {"a": {"value": 1}},
              "runyard": {"name": "{lr}"}}  # fmt: skip
    _, problems = read_sweep(config)
    assert any("no braces" in problem.mend for problem in problems)
