"""Turns YAML and JSON text into plain data that remembers its lines.

The rules are those of W&B (YAML 1.1), except: `3e-3` is a number, a date stays text, and a repeated
key is an error. Sizes are bounded, because the server reads documents from anybody with a key.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, cast

import yaml
from yaml.composer import Composer
from yaml.constructor import ConstructorError, SafeConstructor
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.resolver import Resolver

from runyard.reading.faults import find_fault, snippet
from runyard.reading.problems import Path, show

MOST_CHARACTERS = 1_000_000
# Counted with aliases expanded. Each takes about 17 us; other threads of a server go on meanwhile.
MOST_NODES = 20_000
DEEPEST = 60

try:
    from yaml._yaml import CParser as _Parser
except ImportError:  # PyYAML built without libyaml: the same events, slower
    from yaml.parser import Parser
    from yaml.reader import Reader
    from yaml.scanner import Scanner

    class _Parser(Reader, Scanner, Parser):  # type: ignore[no-redef]
        def __init__(self, stream: str) -> None:
            Reader.__init__(self, stream)
            Scanner.__init__(self)
            Parser.__init__(self)


# Plain texts for messages of PyYAML.
_MENDS = (
    ("mapping values are not allowed", "quote text that holds a colon, and mind the indentation"),
    ("stands twice", "remove one of the two"),
    ("another document", "write one sweep a file"),
)


class DocumentError(Exception):
    """The text is not a document. `line` and `column` count from 1."""

    def __init__(
        self, line: int | None, column: int | None, message: str, mend: str | None = None
    ) -> None:
        super().__init__(message)
        self.line = line
        self.column = column
        self.message = message
        known = (mend for words, mend in _MENDS if words in message)
        self.mend = mend or next(known, "write YAML or JSON, as a sweep file has it")
        # The line with a caret below the fault; set as soon as the text is known.
        self.snippet = ""

    def text_with_place(self, source: str) -> str:
        """The place, what is wrong with it, and the line itself."""
        parts = (source, self.line, self.column)
        where = ":".join(str(part) for part in parts if part is not None)
        return f"{where}: {self.message}" + (f"\n{self.snippet}" if self.snippet else "")


class Document:
    """The data of a text, and the line of every part of it."""

    def __init__(self, data: Any, root: Node | None) -> None:
        self.data = data
        self._root = root
        self._entries: dict[int, dict[str, tuple[int, Node]]] = {}

    def line_of(self, path: Path) -> int | None:
        """The line of the value at `path`, or of the nearest value around it."""
        node, line = self._root, None if self._root is None else _line(self._root)
        for step in path:
            entry = self._entry(node, step)
            if entry is None:
                break
            line, node = entry
        return line

    def _entry(self, node: Node | None, step: str | int) -> tuple[int, Node] | None:
        """Line and node of one step down."""
        if isinstance(node, MappingNode):
            if id(node) not in self._entries:
                # Merged pairs come before the mapping's own pairs, which win.
                self._entries[id(node)] = {
                    key.value: (_line(key), value)
                    for key, value in node.value
                    if isinstance(key, ScalarNode)
                }
            return self._entries[id(node)].get(str(step))
        if isinstance(node, SequenceNode) and isinstance(step, int) and step < len(node.value):
            return _line(node.value[step]), node.value[step]
        return None


def read_document(text: str, *, clocks: bool = False, typed: Sequence[Path] = ()) -> Document:
    """The document in a text; DocumentError says what is wrong with it, and where.

    `clocks`: 2:00:00 is text. YAML 1.1 takes it for a number of base 60.
    `typed`: paths of lists whose words stay as they were typed; "*" is any key.
    """
    if len(text) > MOST_CHARACTERS:
        raise DocumentError(None, None, f"the text is longer than {MOST_CHARACTERS:,} characters")
    try:
        return _read(text, clocks, typed)
    except DocumentError as error:
        if error.line is not None and error.column is not None:
            error.snippet = snippet(text, error.line, error.column)
        raise


def _read(text: str, clocks: bool, typed: Sequence[Path]) -> Document:
    try:
        loader = _Loader(text, clocks)
        root = loader.get_single_node()
        if root is None:
            return Document(None, None)
        _check(root)
        for path in typed:
            _keep_text(root, path)
        data = loader.value(root)
    except yaml.YAMLError as error:
        raise _explained(text, error) from None
    except UnicodeError:
        raise DocumentError(None, None, "the text holds characters that are none") from None
    except (ValueError, OverflowError) as error:  # `!!int abc`, and integers of 5,000 digits
        raise DocumentError(None, None, f"a value cannot be read: {show(str(error))}") from None
    return Document(data, root)


_YAML = "tag:yaml.org,2002:"
_TEXT, _LIST, _MAPPING, _MERGE = (_YAML + kind for kind in ("str", "seq", "map", "merge"))


class _Loader(Composer, _Parser, SafeConstructor, Resolver):
    """PyYAML's safe loader, composing in Python, where depth can be counted."""

    def __init__(self, text: str, clocks: bool) -> None:
        _Parser.__init__(self, text)
        Composer.__init__(self)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)
        self._depth = 0
        self._nodes = 0
        self._clocks = clocks

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        self._depth += 1
        self._nodes += 1
        if self._depth > DEEPEST:
            raise self._refusal(f"nested deeper than {DEEPEST}")
        if self._nodes > MOST_NODES:
            raise self._refusal(f"more than {MOST_NODES:,} values")
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def value(self, node: Node) -> Any:
        """Plain data, in a third of the time that PyYAML takes, which also allows cycles."""
        if isinstance(node, ScalarNode):
            if node.tag == _TEXT:
                return node.value
        elif isinstance(node, SequenceNode) and node.tag == _LIST:
            return [self.value(item) for item in node.value]
        elif isinstance(node, MappingNode) and node.tag == _MAPPING:
            if any(key.tag == _MERGE for key, _ in node.value):
                self.flatten_mapping(node)
            return {self.value(key): self.value(item) for key, item in node.value}
        return _CONSTRUCTORS.get(node.tag, _Loader.unknown)(self, node)

    def _refusal(self, message: str) -> DocumentError:
        mark = cast("Any", self).peek_event().start_mark
        return DocumentError(mark.line + 1, mark.column + 1, message)

    def integer(self, node: ScalarNode) -> int | str:
        if self._clocks and ":" in node.value:
            return str(node.value)
        return int(self.construct_yaml_int(node))

    def number(self, node: ScalarNode) -> float | str:
        if self._clocks and ":" in node.value:
            return str(node.value)
        value = self.construct_yaml_float(node)
        # An unquoted commit such as 7e12345 looks like a number that is too large.
        return node.value if math.isinf(value) and "inf" not in node.value.lower() else value

    def text(self, node: ScalarNode) -> str:
        return str(node.value)

    def unknown(self, node: Node) -> Any:
        raise ConstructorError(None, None, f"the tag {node.tag} is not allowed", node.start_mark)


_Loader.add_implicit_resolver(
    _YAML + "float",
    # Each digit can match in one way only; otherwise a million digits take hours.
    re.compile(r"^[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)
_CONSTRUCTORS: dict[str, Any] = {
    _YAML + "null": SafeConstructor.construct_yaml_null,
    _YAML + "bool": SafeConstructor.construct_yaml_bool,
    _YAML + "int": _Loader.integer,
    _YAML + "float": _Loader.number,
    _YAML + "timestamp": _Loader.text,
    # Tags without a form in JSON (binary, set, ...) are unknown, because no run could store them.
}


def _check(root: Node) -> None:
    """Refuse repeated keys, cycles, and more nodes than MOST_NODES with aliases expanded."""
    sizes: dict[int, int | None] = {}

    def size(node: Node) -> int:
        if id(node) in sizes:
            known = sizes[id(node)]
            if known is None:
                raise _refusal(node, "an alias stands inside of what it repeats")
            return known
        sizes[id(node)] = None
        total = 1
        if isinstance(node, MappingNode):
            _check_keys(node)
            total += sum(size(key) + size(value) for key, value in node.value)
        elif isinstance(node, SequenceNode):
            total += sum(size(item) for item in node.value)
        if total > MOST_NODES:
            raise _refusal(node, f"more than {MOST_NODES:,} values, with aliases written out")
        sizes[id(node)] = total
        return total

    size(root)


def _check_keys(node: MappingNode) -> None:
    lines: dict[tuple[str, str], int] = {}
    for key, _ in node.value:
        if not isinstance(key, ScalarNode):
            raise _refusal(key, "a list or a mapping is no key")
        if key.style not in ("'", '"') and key.value[:1].isspace():
            raise _refusal(key, "a no-break space stands where YAML wants spaces",
                           "write spaces, which look the same")  # fmt: skip
        name = (key.tag, key.value)
        if name in lines:
            raise _refusal(
                key, f"{show(key.value)} stands twice in one mapping, first in line {lines[name]}"
            )
        if key.tag != _MERGE:
            lines[name] = _line(key)


def _keep_text(node: Node, path: Path) -> None:
    """Turn the words at a place into text. An empty word, and null, stays as it is."""
    if path and isinstance(node, MappingNode):
        for key, value in node.value:
            if path[0] in (key.value, "*"):
                _keep_text(value, path[1:])
    elif not path:
        for word in node.value if isinstance(node, SequenceNode) else [node]:
            if isinstance(word, ScalarNode) and word.tag != _YAML + "null":
                word.tag = _TEXT


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _refusal(node: Node, message: str, mend: str | None = None) -> DocumentError:
    return DocumentError(_line(node), int(node.start_mark.column) + 1, message, mend)


def _explained(text: str, error: yaml.YAMLError) -> DocumentError:
    fault = find_fault(text, error)
    if fault is not None:
        return DocumentError(fault.line, fault.column, fault.message, fault.mend)
    if not isinstance(error, yaml.MarkedYAMLError):
        return DocumentError(None, None, _plain(str(error)))
    mark = error.problem_mark or error.context_mark
    words = _plain(" ".join(part for part in (error.context, error.problem) if part))
    if mark is None:
        return DocumentError(None, None, words)
    return DocumentError(mark.line + 1, mark.column + 1, words)


def _plain(text: str) -> str:
    """PyYAML's message on one line, without the snippet."""
    return " ".join(text.split())
