"""Values as bytes and back, without pickle: numbers, texts, arrays, and what holds them.

A value becomes a *note* (JSON) in which arrays are numbered, and the arrays' bytes after it. Custom
containers (named tuples, Equinox modules, Optax states) are not stored: they are filled again from
the one that the program has made, which is why reading takes the program's value as `like`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from importlib import import_module
from typing import Any, BinaryIO, NamedTuple

from runyard.train.errors import Damaged, TrainError
from runyard.train.frameworks import loaded

_MAGIC = b"runyard tree 1\n"
_LENGTH = struct.Struct("<Q")

Note = Any


class _Array(NamedTuple):
    value: Any
    about: dict[str, Any]


def write_tree(value: object, file: BinaryIO) -> None:
    """Write a value. What cannot be stored is a TrainError that names its place."""
    arrays: list[_Array] = []
    note = _note(value, arrays, "")
    header = json.dumps({"value": note, "arrays": [array.about for array in arrays]}).encode()
    file.write(_MAGIC + _LENGTH.pack(len(header)) + header)
    for array in arrays:
        file.write(_bytes(array.value, array.about["kind"]))


def check_tree(value: object) -> None:
    """Raise what `write_tree` would raise, without writing or copying anything."""
    _note(value, [], "")


def read_tree(file: BinaryIO, like: object = None) -> Any:
    """The value that was written. Arrays, lists, dicts and generators of `like` are filled in place
    where that is possible, so that the program's own variables are right too."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise Damaged("this is no tree of runyard")
    header = json.loads(file.read(_LENGTH.unpack(file.read(_LENGTH.size))[0]))
    arrays = [_array(file, about) for about in header["arrays"]]
    return _value(header["value"], like, arrays, "")


def _note(value: Any, arrays: list[_Array], place: str) -> Note:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if (about := _about_array(value)) is not None:
        arrays.append(_Array(value, about))
        return {"array": len(arrays) - 1}
    # Subclasses, such as a YAML reader's own numbers, are stored as what they stand for.
    for plain in (bool, int, float, str):
        if isinstance(value, plain):
            return plain(value)
    if (kind := _random_kind(value)) is not None:
        return {kind: _note(_random_state(value, kind), arrays, place)}
    if isinstance(value, dict):
        return {
            "dict": [
                [_note(key, arrays, place), _note(item, arrays, f"{place}[{key!r}]")]
                for key, item in value.items()
            ]
        }
    if type(value) in (list, tuple):
        items = [_note(item, arrays, f"{place}[{i}]") for i, item in enumerate(value)]
        return {type(value).__name__: items}
    if callable(getattr(value, "state_dict", None)):
        return {"state": _note(value.state_dict(), arrays, place)}
    if (leaves := _leaves(value)) is not None:
        return {"leaves": [[name, _leaf_note(leaf, arrays, place + name)] for name, leaf in leaves]}
    raise TrainError(
        f"a checkpoint cannot hold {place.lstrip('.') or 'this value'}: "
        f"it is a {type(value).__module__}.{type(value).__qualname__}",
        mend="give numbers, texts, arrays, lists and dicts of them, or an object with "
        "state_dict() and load_state_dict(), or with save(folder) and load(folder)",
    )


def _leaf_note(leaf: object, arrays: list[_Array], place: str) -> Note:
    # Models hold functions, such as their activation: the program's own stay where they are.
    return {"kept": True} if callable(leaf) else _note(leaf, arrays, place)


def _value(note: Note, like: Any, arrays: list[Any], place: str) -> Any:
    if not isinstance(note, dict):
        return note
    ((kind, inner),) = note.items()
    if kind == "kept":
        return like
    if kind == "array":
        return _fitted(arrays[inner], like, place)
    if kind == "dict":
        same = like if isinstance(like, dict) else {}
        items = {}
        for key_note, item in inner:
            key = _value(key_note, None, arrays, place)
            items[key] = _value(item, same.get(key), arrays, f"{place}[{key!r}]")
        if type(like) is not dict:
            return items
        like.clear()
        like.update(items)
        return like
    if kind in ("list", "tuple"):
        same_length = isinstance(like, (list, tuple)) and len(like) == len(inner)
        values = [
            _value(item, like[i] if same_length else None, arrays, f"{place}[{i}]")
            for i, item in enumerate(inner)
        ]
        if kind == "tuple":
            return tuple(values)
        if type(like) is not list:
            return values
        like[:] = values
        return like
    if kind == "state":
        state = _value(inner, None, arrays, place)
        if like is None:
            return state
        like.load_state_dict(state)
        return like
    if kind == "leaves":
        return _refilled(dict(inner), like, arrays, place)
    return _with_random_state(kind, _value(inner, None, arrays, place), like)


def _fitted(array: Any, like: Any, place: str) -> Any:
    """A stored array as the program holds it: same memory, same device."""
    if isinstance(array, (bytes, bytearray)) or like is None or not hasattr(like, "shape"):
        return array
    if tuple(like.shape) != tuple(array.shape):
        raise TrainError(
            f"the checkpoint does not fit {place.lstrip('.') or 'the array'}: "
            f"it holds shape {tuple(array.shape)}, the program has {tuple(like.shape)}"
        )
    numpy, jax = loaded("numpy"), loaded("jax")
    if numpy is not None and isinstance(like, numpy.ndarray) and isinstance(array, numpy.ndarray):
        if like.flags.writeable and like.dtype == array.dtype:
            like[...] = array
            return like
        return array
    if jax is not None and isinstance(like, jax.Array) and isinstance(array, jax.Array):
        return jax.device_put(array, like.sharding)
    torch = loaded("torch")
    if torch is not None and isinstance(like, torch.Tensor) and isinstance(array, torch.Tensor):
        with torch.no_grad():
            return like.copy_(array)
    return array


def _leaves(value: object) -> list[tuple[str, Any]] | None:
    """Names and leaves of a container that JAX knows, or of a named tuple."""
    jax = loaded("jax")
    if jax is not None and not jax.tree_util.all_leaves([value]):
        pairs, _ = jax.tree_util.tree_flatten_with_path(value)
        return [(jax.tree_util.keystr(path), leaf) for path, leaf in pairs]
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", None)
        return None if fields is None else list(zip(fields, value, strict=True))
    return None


def _refilled(stored: dict[str, Note], like: Any, arrays: list[Any], place: str) -> Any:
    leaves = None if like is None else _leaves(like)
    if leaves is None or [name for name, _ in leaves] != list(stored):
        raise TrainError(
            f"the checkpoint does not fit {place.lstrip('.') or 'this value'}: it holds "
            f"{len(stored)} leaves, {', '.join(list(stored)[:5])} ..., and the program has others",
            mend="make the model as it was made for the checkpoint, or use another folder",
        )
    filled = [_value(stored[name], leaf, arrays, place + name) for name, leaf in leaves]
    jax = loaded("jax")
    if jax is not None and not jax.tree_util.all_leaves([like]):
        return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(like), filled)
    return type(like)(*filled)


def _about_array(value: Any) -> dict[str, Any] | None:
    """Kind, type and shape of an array of any library, or of bytes; None if it is neither."""
    if isinstance(value, (bytes, bytearray)):
        return {"kind": "bytes", "bytes": len(value)}
    jax, torch, numpy = loaded("jax"), loaded("torch"), loaded("numpy")
    if jax is not None and isinstance(value, jax.Array):
        if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
            data = jax.random.key_data(value)
            return _described("key", data) | {"impl": str(jax.random.key_impl(value))}
        return _described("jax", value)
    if torch is not None and isinstance(value, torch.Tensor):
        return _described("torch", value)
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        if value.dtype.hasobject:
            return None
        kind = "numpy" if isinstance(value, numpy.ndarray) else "number"
        return _described(kind, value)
    return None


def _described(kind: str, value: Any) -> dict[str, Any]:
    # Names for JAX's own types, which numpy writes as raw bytes; the rest says its byte order.
    dtype = str(value.dtype)
    if kind in ("numpy", "number") and value.dtype.kind != "V":
        dtype = value.dtype.str
    return {"kind": kind, "dtype": dtype, "shape": list(value.shape), "bytes": int(value.nbytes)}


def _bytes(value: Any, kind: str) -> bytes | memoryview:
    if kind == "bytes":
        return bytes(value)
    if kind == "torch":
        flat = value.detach().cpu().contiguous().reshape(-1).view(loaded("torch").uint8)
        return bytes(flat.tolist()) if loaded("numpy") is None else flat.numpy().tobytes()
    if kind == "key":
        value = loaded("jax").random.key_data(value)
    # Already in memory as it goes to the file, unless its rows are scattered.
    contiguous = import_module("numpy").ascontiguousarray(value)
    return memoryview(contiguous.reshape(-1).view("uint8"))


def _array(file: BinaryIO, about: dict[str, Any]) -> Any:
    data = bytearray(about["bytes"])
    if file.readinto(data) != len(data):  # type: ignore[attr-defined]
        raise Damaged("the tree ends too early")
    if about["kind"] == "bytes":
        return bytes(data)
    if about["kind"] == "torch":
        torch = import_module("torch")
        kind = getattr(torch, about["dtype"].removeprefix("torch."))
        if not data:
            return torch.empty(about["shape"], dtype=kind)
        return torch.frombuffer(data, dtype=kind).reshape(about["shape"])
    numpy = import_module("numpy")
    if about["kind"] in ("numpy", "number"):
        array = numpy.frombuffer(data, _dtype(about["dtype"])).reshape(about["shape"])
        return array[()] if about["kind"] == "number" else array
    jax = import_module("jax")
    array = numpy.frombuffer(data, _dtype(about["dtype"])).reshape(about["shape"])
    if about["kind"] == "key":
        return jax.random.wrap_key_data(jax.numpy.asarray(array), impl=about["impl"])
    return jax.numpy.asarray(array)


def _dtype(name: str) -> Any:
    numpy = import_module("numpy")
    try:
        return numpy.dtype(name)
    except TypeError:
        # bfloat16 and its kin, which come with JAX.
        return numpy.dtype(getattr(import_module("ml_dtypes"), name))


def _random_kinds() -> Iterator[tuple[str, type[Any]]]:
    if (numpy := loaded("numpy")) is not None:
        yield "numpy generator", numpy.random.Generator
        yield "numpy state", numpy.random.RandomState
    if (torch := loaded("torch")) is not None:
        yield "torch generator", torch.Generator
    if (random := loaded("random")) is not None:
        yield "python random", random.Random


def _random_kind(value: object) -> str | None:
    return next((kind for kind, cls in _random_kinds() if isinstance(value, cls)), None)


def _random_state(value: Any, kind: str) -> Any:
    if kind == "numpy generator":
        return value.bit_generator.state
    if kind == "numpy state":
        return value.get_state(legacy=False)
    return value.get_state() if kind == "torch generator" else value.getstate()


def _with_random_state(kind: str, state: Any, like: Any) -> Any:
    if _random_kind(like) != kind:
        raise TrainError(f"the checkpoint holds a {kind} where the program has {like!r}")
    if kind == "numpy generator":
        like.bit_generator.state = state
    elif kind in ("numpy state", "torch generator"):
        like.set_state(state)
    else:
        like.setstate(state)
    return like
