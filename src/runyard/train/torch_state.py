"""States of torch's objects: with or without DDP, on any device, under torch's safe loader."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from runyard.train.errors import TrainError
from runyard.train.frameworks import loaded

# What wrappers put before every name: DDP and DataParallel, and torch.compile.
_PREFIXES = ("module.", "_orig_mod.")


def is_torch_object(value: object) -> bool:
    """A module, an optimiser, a schedule, or anything that states itself as they do."""
    return loaded("torch") is not None and callable(getattr(value, "state_dict", None))


def unwrapped(model: Any) -> Any:
    """The model inside DDP, DataParallel and torch.compile."""
    torch = import_module("torch")
    wrappers: tuple[type[Any], ...] = (torch.nn.DataParallel,)
    if (parallel := loaded("torch.nn.parallel")) is not None:
        wrappers += (parallel.DistributedDataParallel,)
    while True:
        if isinstance(model, wrappers):
            model = model.module
        elif hasattr(model, "_orig_mod"):
            model = model._orig_mod
        else:
            return model


def state_of(value: Any) -> Any:
    """The state, in types that torch's safe loader takes. Every rank asks, for sharded models."""
    return _plain(unwrapped(value).state_dict(), "")


def write_state(state: object, file: BinaryIO) -> None:
    import_module("torch").save(state, file)


def read_state(file: BinaryIO | str) -> Any:
    """A state, on the CPU: `load_state_dict` brings it to where the model is."""
    return import_module("torch").load(file, map_location="cpu", weights_only=True)


def fill(value: Any, state: Any) -> None:
    """Give a state to an object, whichever of the two was wrapped."""
    inside = unwrapped(value)
    if isinstance(inside, import_module("torch").nn.Module):
        state = _without_prefixes(state)
    inside.load_state_dict(state)


def load_model(model: Any, path: str | os.PathLike[str], part: str = "model") -> Any:
    """Load weights into a model: from a checkpoint's folder, or from any file of torch.save.

    Takes plain states and those from inside DDP, and dicts that hold one under `part`, "model",
    "model_state" or "state_dict".
    """
    place = Path(path)
    state = read_state(str(place / f"{part}.pt" if place.is_dir() else place))
    for name in (part, "model", "model_state", "state_dict", "model_state_dict"):
        if isinstance(state.get(name), dict):
            state = state[name]
            break
    fill(model, state)
    return model


def _without_prefixes(state: dict[str, Any]) -> dict[str, Any]:
    for prefix in _PREFIXES * len(_PREFIXES):
        if state and all(name.startswith(prefix) for name in state):
            state = {name.removeprefix(prefix): value for name, value in state.items()}
    return state


def _plain(value: Any, place: str) -> Any:
    """The same state in torch's and Python's own types."""
    torch, numpy = loaded("torch"), loaded("numpy")
    if value is None or type(value) in (bool, int, float, complex, str, bytes):
        return value
    if isinstance(value, torch.Tensor):
        # A parameter would bring its hooks along, and a slice all of what it was cut from.
        tensor = value.detach()
        whole = tensor.layout != torch.strided or (
            tensor.untyped_storage().nbytes() <= tensor.numel() * tensor.element_size()
        )
        return tensor if whole else tensor.clone()
    if isinstance(value, (torch.Size, torch.dtype, torch.device)):
        return value
    if numpy is not None and isinstance(value, numpy.generic):
        return value.item()
    for plain in (bool, int, float, str):
        if isinstance(value, plain):
            return plain(value)
    if isinstance(value, dict):
        return {
            _plain(key, place): _plain(item, f"{place}.{key}".lstrip("."))
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple, set)):
        items = [_plain(item, f"{place}[{i}]") for i, item in enumerate(value)]
        return items if isinstance(value, list) else tuple(items)
    raise TrainError(
        f"a checkpoint cannot hold {place}: torch's safe loader would refuse to read a "
        f"{type(value).__module__}.{type(value).__qualname__}",
        mend="let state_dict() return numbers, texts, tensors, and lists and dicts of them",
    )
