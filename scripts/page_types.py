"""Write dashboard/app/src/shapes.ts: what the server answers, as the page's types.

.venv/bin/python scripts/page_types.py           writes the file
.venv/bin/python scripts/page_types.py --print   prints it

It has the shapes of `runyard.shapes` that modules of the page import from it, and those in them.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

from runyard import shapes

SOURCES = Path(__file__).parent.parent / "dashboard" / "app" / "src"
FILE = SOURCES / "shapes.ts"
_HEAD = """\
// What the server answers, in one file. Written by scripts/page_types.py from src/runyard/shapes.
"""
_IMPORT = re.compile(r"""\{([^}]*)\} from "[./]+/shapes\"""")
_WORDS: dict[Any, str] = {
    Any: "any", str: "string", int: "number", float: "number", bool: "boolean", NoneType: "null",
}  # fmt: skip


def page_types() -> str:
    declared = {
        name: shape
        for module in pkgutil.iter_modules(shapes.__path__)
        for name, shape in vars(importlib.import_module(f"runyard.shapes.{module.name}")).items()
        if is_typeddict(shape)
    }
    texts = [path.read_text() for path in SOURCES.rglob("*.ts*")]
    imports = {
        name.strip().removeprefix("type ").partition(" as ")[0]
        for text in texts
        for names in _IMPORT.findall(text)
        for name in names.split(",")
        if name.strip()
    }
    wanted: dict[str, Any] = {}
    waiting = [declared[name] for name in imports]
    while waiting:
        shape = waiting.pop()
        if shape.__name__ not in wanted:
            wanted[shape.__name__] = shape
            waiting += [inner for kind in get_type_hints(shape).values() for inner in _within(kind)]
    return "\n".join([_HEAD, *(_interface(wanted[name]) for name in sorted(wanted))])


def _within(kind: Any) -> Iterator[Any]:
    if is_typeddict(kind):
        yield kind
    for part in get_args(kind):
        yield from _within(part)


def _interface(shape: Any) -> str:
    about = f"/** {' '.join(shape.__doc__.split())} */\n" if shape.__doc__ else ""
    required = shape.__required_keys__
    fields = "".join(
        f"  {name}{'' if name in required else '?'}: {_type(kind)};\n"
        for name, kind in get_type_hints(shape).items()
    )
    return f"{about}export interface {shape.__name__} {{\n{fields}}}\n"


def _type(kind: Any) -> str:
    if kind in _WORDS:
        return _WORDS[kind]
    if is_typeddict(kind):
        return str(kind.__name__)
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return " | ".join(json.dumps(value) for value in args)
    if origin is list:
        item = _type(args[0])
        return f"({item})[]" if " " in item else f"{item}[]"
    if origin in (dict, Mapping):
        return f"Record<string, {_type(args[1])}>"
    return " | ".join(_type(alternative) for alternative in args)


if __name__ == "__main__":
    if "--print" in sys.argv:
        sys.stdout.write(page_types())
    else:
        FILE.write_text(page_types())
