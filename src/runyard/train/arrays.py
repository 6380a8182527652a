"""The arrays of a model by name: for histograms, and to find the one that is not finite."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from runyard.train.errors import NotFinite
from runyard.train.frameworks import loaded


def named_arrays(tree: Any) -> dict[str, Any]:
    """The arrays in a model, named by where they are: 'mlp.layers.0.weight'.

    Takes torch modules (inside DDP too), trees that JAX knows, and dicts and lists of arrays.
    """
    torch, jax = loaded("torch"), loaded("jax")
    if torch is not None and isinstance(tree, torch.nn.Module):
        from runyard.train.torch_state import unwrapped

        return {name: value.detach() for name, value in unwrapped(tree).named_parameters()}
    if jax is not None:
        pairs, _ = jax.tree_util.tree_flatten_with_path(tree)
        return {
            ".".join(_key(key) for key in path): leaf for path, leaf in pairs if _is_array(leaf)
        }
    return dict(_walk(tree, ""))


def gradients(model: Any) -> dict[str, Any]:
    """The gradients in a torch module by the names of their parameters."""
    from runyard.train.torch_state import unwrapped

    named = unwrapped(model).named_parameters()
    return {name: value.grad for name, value in named if value.grad is not None}


def histograms(**trees: Any) -> dict[str, Any]:
    """W&B histograms of the arrays of models, ready to be logged; empty without wandb.

        run.log({"loss": loss, **train.histograms(parameters=model, gradients=model)})

    The keyword is the heading, 'parameters/mlp.layers.0.weight'. Under `gradients` a torch module
    stands for the gradients in it.
    """
    wandb, torch = loaded("wandb"), loaded("torch")
    if wandb is None:
        return {}
    numpy = import_module("numpy")
    counts = {}
    for heading, tree in trees.items():
        module = torch is not None and isinstance(tree, torch.nn.Module)
        arrays = gradients(tree) if module and heading == "gradients" else named_arrays(tree)
        for name, array in arrays.items():
            values = _in_numpy(array, numpy)
            finite = values[numpy.isfinite(values)]
            # wandb cannot bin what is not finite, and an empty histogram is an error.
            if finite.size:
                counts[f"{heading}/{name}" if name else heading] = wandb.Histogram(finite)
    return counts


def check_finite(**values: Any) -> None:
    """Raise NotFinite, with the name of the first that is, if anything is NaN or infinite.

    train.check_finite(loss=loss, model=model)
    """
    for heading, value in values.items():
        if isinstance(value, (int, float)):
            arrays: Mapping[str, Any] = {"": value}
        else:
            arrays = named_arrays(value) or {"": value}
        for name, array in arrays.items():
            if not _is_finite(array):
                where = f"{heading}.{name}" if name else heading
                raise NotFinite(
                    f"{where} is not finite any more",
                    mend="a smaller learning rate, clipped gradients, or float32 in place of "
                    "half precision; the last checkpoint is from before",
                )


def _walk(tree: Any, place: str) -> Iterator[tuple[str, Any]]:
    items: Any = ()
    if isinstance(tree, Mapping):
        items = tree.items()
    elif hasattr(tree, "_fields"):
        items = zip(tree._fields, tree, strict=True)
    elif isinstance(tree, (list, tuple)):
        items = enumerate(tree)
    elif _is_array(tree):
        yield place, tree
    for name, item in items:
        yield from _walk(item, f"{place}.{name}" if place else str(name))


def _key(key: Any) -> str:
    """One step of a path in a JAX tree: a dict's key, a place in a list, a field."""
    for attribute in ("key", "idx", "name"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


def _is_array(value: object) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _in_numpy(array: Any, numpy: Any) -> Any:
    if (torch := loaded("torch")) is not None and isinstance(array, torch.Tensor):
        array = array.detach().float().cpu()
    return numpy.asarray(array, dtype=float).reshape(-1)


def _is_finite(value: Any) -> bool:
    torch, jax, numpy = loaded("torch"), loaded("jax"), loaded("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        return bool(torch.isfinite(value).all())
    if jax is not None and isinstance(value, jax.Array):
        return bool(jax.numpy.isfinite(value).all())
    if numpy is not None and _is_array(value):
        return bool(numpy.isfinite(value).all())
    return math.isfinite(value)
