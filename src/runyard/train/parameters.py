"""Parameters from a YAML file's section: one object, two ways to reach a value."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from runyard.train.errors import TrainError
from runyard.train.values import NUMBER, like


class Params(dict[str, Any]):
    """A dict whose items are attributes too: `params.lr` and `params["lr"]` are one value.

    Dicts inside become Params as well. It can be pickled, sent to other ranks, and given to
    `wandb.init(config=params)` as it is.
    """

    def __init__(self, *pairs: Mapping[str, Any] | Iterable[tuple[str, Any]], **more: Any) -> None:
        super().__init__()
        self.update(*pairs, **more)

    @classmethod
    def load(cls, path: str | os.PathLike[str], section: str | None = None) -> Params:
        """Read a YAML file, or one section of it; `<<: *other` inherits another section.

        Numbers are numbers, 1E-3 too; the text None is no value.
        """
        text = Path(path).read_text(encoding="utf-8")
        yaml = _yaml()
        try:
            values = yaml.load(text, Loader=_loader(yaml))
        except yaml.YAMLError as error:
            raise TrainError(f"{path} is no YAML file", said=error) from error
        if not isinstance(values, dict):
            raise TrainError(f"{path} holds no sections")
        if section is not None:
            if not isinstance(values.get(section), dict):
                raise TrainError(
                    f"{path} has no section {section!r}",
                    mend=" or ".join(name for name in values if isinstance(values[name], dict)),
                )
            values = values[section]
        return cls(values)

    def merge(self, values: Mapping[str, Any], *, known: bool = False) -> Params:
        """Lay other values on top, in the types of those they replace: swept ones, flags.

        `params.merge(run.config)` takes what a sweep chose. With `known=True` a name that is not
        there yet is an error.
        """
        for name, value in dict(values).items():
            if known and name not in self:
                close = difflib.get_close_matches(name, self, 3)
                raise TrainError(
                    f"there is no parameter {name!r}", mend=" or ".join(close or sorted(self))
                )
            if isinstance(value, Mapping) and isinstance(self.get(name), Params):
                self[name].merge(value, known=known)
            else:
                self[name] = like(value, self.get(name))
        return self

    def dump(self, path: str | os.PathLike[str]) -> None:
        """Write all values as YAML that reads back with the same types."""
        yaml = _yaml()
        text = yaml.dump(self.plain(), Dumper=_dumper(yaml), sort_keys=False)
        Path(path).write_text(text, encoding="utf-8")

    def plain(self) -> dict[str, Any]:
        """The values in plain dicts and lists."""
        return {name: _plain(value) for name, value in self.items()}

    def __str__(self) -> str:
        width = max((len(str(name)) for name in self), default=0)
        return "\n".join(f"{name!s:<{width}}  {value!r}" for name, value in self.items())

    def __setitem__(self, name: str, value: Any) -> None:
        if isinstance(name, str) and hasattr(dict, name):
            raise TrainError(
                f"a parameter cannot be called {name!r}: params.{name} is the dict's own",
                mend=f"{name}_",
            )
        super().__setitem__(name, _own(value))

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no parameter {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        try:
            del self[name]
        except KeyError:
            raise AttributeError(f"there is no parameter {name!r}") from None

    # dict's own versions of these go past __setitem__.
    def update(self, *pairs: Any, **more: Any) -> None:
        for name, value in dict(*pairs, **more).items():
            self[name] = value

    def setdefault(self, name: str, default: Any = None) -> Any:
        if name not in self:
            self[name] = default
        return self[name]

    def copy(self) -> Params:
        return Params(self)

    def __or__(self, other: Any) -> Params:  # type: ignore[override]
        both = self.copy()
        both.update(other)
        return both

    def __ior__(self, other: Any) -> Params:  # type: ignore[override]
        self.update(other)
        return self


def _own(value: Any) -> Any:
    """A value as parameters hold it: dicts as Params, the text None as no value."""
    if isinstance(value, dict) and not isinstance(value, Params):
        return Params(value)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_own(item) for item in value)
    return None if isinstance(value, str) and value == "None" else value


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()  # A number of numpy's, torch's or JAX's.
    # Numbers and texts of a library's own kind too, such as torch.__version__.
    for kind in (bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    return None if value is None else str(value)


def _yaml() -> Any:
    try:
        return import_module("yaml")
    except ImportError as error:
        raise TrainError("YAML files need PyYAML", said=error, mend="pip install pyyaml") from error


def _loader(yaml: Any) -> Any:
    return _with_numbers(yaml.SafeLoader)


def _dumper(yaml: Any) -> Any:
    return _with_numbers(yaml.SafeDumper)


def _with_numbers(kind: Any) -> Any:
    """YAML 1.2's numbers: 1E-3 is one, 1:30 and 010 are not what 1.1 makes of them; no dates."""
    float_tag, int_tag = "tag:yaml.org,2002:float", "tag:yaml.org,2002:int"
    replaced = (float_tag, int_tag, "tag:yaml.org,2002:timestamp")
    resolvers = {
        first: [(tag, pattern) for tag, pattern in rules if tag not in replaced]
        for first, rules in kind.yaml_implicit_resolvers.items()
    }
    own: Any = type(kind.__name__, (kind,), {"yaml_implicit_resolvers": resolvers})
    re = import_module("re")
    own.add_implicit_resolver(int_tag, re.compile(r"^[-+]?[0-9]+$"), list("-+0123456789"))
    not_infinite = rf"{NUMBER.pattern}|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
    own.add_implicit_resolver(float_tag, re.compile(f"^(?:{not_infinite})$"), list("-+.0123456789"))
    if hasattr(kind, "construct_yaml_int"):
        own.add_constructor(int_tag, lambda loader, node: int(loader.construct_scalar(node)))
        own.add_constructor(float_tag, _read_float)
    return own


def _read_float(loader: Any, node: Any) -> float:
    text: str = loader.construct_scalar(node).lower()
    # YAML writes .inf and .nan where Python writes inf and nan.
    return float(text.replace(".inf", "inf").replace(".nan", "nan"))
