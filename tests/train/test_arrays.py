"""Names, histograms and the watch for what is not finite; torch and JAX are in test_frameworks."""

from __future__ import annotations

import numpy as np
import pytest

from runyard import train


def test_arrays_are_named_by_their_place() -> None:
    model = {"layers": [{"weight": np.ones((2, 2)), "bias": np.zeros(2)}], "act": max, "n": 3}
    assert list(train.named_arrays(model)) == ["layers.0.weight", "layers.0.bias"]


def test_histograms_are_ready_to_be_logged() -> None:
    wandb = pytest.importorskip("wandb")
    found = train.histograms(
        parameters={"w": np.array([1, 2, np.nan])}, gradients={"w": np.ones(3)}
    )
    assert list(found) == ["parameters/w", "gradients/w"]
    assert isinstance(found["parameters/w"], wandb.Histogram)
    assert sum(found["parameters/w"].histogram) == 2
    assert train.histograms(parameters={"w": np.array([np.nan])}) == {}


def test_what_is_not_finite_is_named() -> None:
    train.check_finite(loss=1.0, model={"w": np.ones(3)}, norm=np.float32(3))
    with pytest.raises(train.NotFinite, match="loss is not finite"):
        train.check_finite(loss=float("nan"))
    with pytest.raises(train.NotFinite, match=r"model\.b\.0 is not finite"):
        train.check_finite(loss=1, model={"w": np.ones(3), "b": [np.array([0, np.inf])]})
