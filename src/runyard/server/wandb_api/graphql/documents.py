"""Executes GraphQL documents without a schema.

Nobody publishes W&B's schema and it grows with every release, so this walks the selection over
plain mappings: a field that is there is answered, one that is not answers null and is logged once.
Next month's client then works as far as it can. An unknown mutation is refused by its name: null
would say that it was carried out.
"""

from __future__ import annotations

import inspect
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from graphql import GraphQLError as SyntaxTrouble
from graphql import Undefined, parse, value_from_ast_untyped
from graphql.language import (
    DirectiveNode,
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
)

from runyard.server.wandb_api.graphql.inputs import Arguments
from runyard.server.wandb_api.graphql.request import Refusal, Source

log = logging.getLogger(__name__)

# Only between these does a fragment's type decide; elsewhere names differ by client version.
_ALTERNATIVES = (
    frozenset({"Run", "User"}),
    frozenset({"ArtifactSequence", "ArtifactPortfolio"}),
)

# The longest document a client sends is some 10 KB, and parsing is slow: 1 MB takes seconds.
_LONGEST_DOCUMENT = 256 << 10
_WORTH_KEEPING = 32 << 10
_MOST_FIELDS = 50_000
# More than any answer that a client asks for; 300 other names for one long field would be more.
_LARGEST_ANSWER = 64 << 20
_MOST_NAMES = 50

_seen_unknown: set[str] = set()


async def execute(
    text: str,
    variables: Mapping[str, Any] | None,
    roots: Mapping[str, Callable[[str], Source]],
    operation_name: str | None = None,
) -> dict[str, Any]:
    """Run the operation in `text` against what `roots` makes for a query or a mutation.

    They get the operation's name.
    """
    try:
        document = _document(text)
        operation = _choose(document, operation_name)
        kind = operation.operation.value
        if kind not in roots:
            raise Refusal(f"a {kind} cannot be answered here")
        walk = _Walk(document, operation, variables or {})
        name = operation.name.value if operation.name else ""
        return await walk.select([operation.selection_set], roots[kind](name), kind.capitalize())
    except SyntaxTrouble as error:
        raise Refusal(error.message) from error
    except RecursionError as error:
        raise Refusal("the document is nested too deep") from error


def _document(text: str) -> DocumentNode:
    if len(text) > _LONGEST_DOCUMENT:
        raise Refusal(f"the document is longer than {_LONGEST_DOCUMENT >> 10} KiB")
    # Clients send the same few documents over and over; odd long ones are not kept in memory.
    return _parse(text) if len(text) <= _WORTH_KEEPING else _parse.__wrapped__(text)


@lru_cache(maxsize=256)
def _parse(text: str) -> DocumentNode:
    return parse(text, no_location=True)


def _choose(document: DocumentNode, name: str | None) -> OperationDefinitionNode:
    """The named operation; the first where the name is missing, empty (0.31) or not there."""
    operations = [
        node for node in document.definitions if isinstance(node, OperationDefinitionNode)
    ]
    if not operations:
        raise Refusal("the document has no operation")
    named = [node for node in operations if name and node.name and node.name.value == name]
    return (named or operations)[0]


class _Walk:
    def __init__(
        self,
        document: DocumentNode,
        operation: OperationDefinitionNode,
        variables: Mapping[str, Any],
    ) -> None:
        self._fragments = {
            node.name.value: node
            for node in document.definitions
            if isinstance(node, FragmentDefinitionNode)
        }
        defaults = {
            node.variable.name.value: value_from_ast_untyped(node.default_value)
            for node in operation.variable_definitions or ()
            if node.default_value is not None
        }
        self._variables = {**defaults, **variables}
        self._fields_left = _MOST_FIELDS
        self._bytes_left = _LARGEST_ANSWER

    async def select(
        self, sets: list[SelectionSetNode], source: Source, place: str
    ) -> dict[str, Any]:
        fields: dict[str, list[FieldNode]] = {}
        spread: set[str] = set()
        for selection_set in sets:
            self._collect(selection_set, source, fields, spread)
        names = Counter(nodes[0].name.value for nodes in fields.values())
        if names and max(names.values()) > _MOST_NAMES:
            raise Refusal(f"{place} is asked for one field under more than {_MOST_NAMES} names")
        if place == "Mutation":
            _refuse_unknown(names, source)
        answer: dict[str, Any] = {}
        for key, nodes in fields.items():
            answer[key] = await self._field(nodes, source, place)
        return answer

    def _collect(
        self,
        sets: SelectionSetNode,
        source: Source,
        fields: dict[str, list[FieldNode]],
        spread: set[str],
    ) -> None:
        for node in sets.selections:
            if not self._is_wanted(node.directives or ()):
                continue
            if isinstance(node, FieldNode):
                key = node.alias.value if node.alias else node.name.value
                fields.setdefault(key, []).append(node)
            elif isinstance(node, InlineFragmentNode):
                condition = node.type_condition.name.value if node.type_condition else None
                if _applies(condition, source):
                    self._collect(node.selection_set, source, fields, spread)
            elif isinstance(node, FragmentSpreadNode):
                # Once is enough, and fragments may lead in circles.
                if node.name.value in spread:
                    continue
                spread.add(node.name.value)
                fragment = self._fragments.get(node.name.value)
                if fragment is None:
                    raise Refusal(f"unknown fragment {node.name.value[:100]}")
                if _applies(fragment.type_condition.name.value, source):
                    self._collect(fragment.selection_set, source, fields, spread)

    def _is_wanted(self, directives: tuple[DirectiveNode, ...] | list[DirectiveNode]) -> bool:
        for directive in directives:
            condition = self._arguments(directive).get("if")
            if directive.name.value == "include" and not condition:
                return False
            if directive.name.value == "skip" and condition:
                return False
        return True

    def _arguments(self, node: FieldNode | DirectiveNode) -> dict[str, Any]:
        values = {
            argument.name.value: value_from_ast_untyped(argument.value, self._variables)
            for argument in node.arguments or ()
        }
        known: dict[str, Any] = _without_undefined(values)
        return known

    async def _field(self, nodes: list[FieldNode], source: Source, place: str) -> Any:
        self._fields_left -= 1
        if self._fields_left < 0:
            raise Refusal(f"the document asks for more than {_MOST_FIELDS} fields")
        first = nodes[0]
        name = first.name.value
        if name not in source:
            _note_unknown(f"{place}.{name[:100]}")
            return None
        value = source[name]
        if callable(value):
            value = value(Arguments(self._arguments(first)))
            if inspect.isawaitable(value):
                value = await value
        sets = [node.selection_set for node in nodes if node.selection_set is not None]
        return await self._complete(value, sets, f"{place}.{name}")

    async def _complete(self, value: Any, sets: list[SelectionSetNode], place: str) -> Any:
        if isinstance(value, list) and sets:
            return [await self._complete(item, sets, place) for item in value]
        if isinstance(value, Mapping) and sets:
            return await self.select(sets, value, place)
        if isinstance(value, Mapping | list):
            if _has_fields(value):
                raise Refusal(f"{place} needs a selection of fields")
        elif value is not None and sets:
            _note_unknown(f"{place} as an object")
            return None
        self._bytes_left -= _size(value)
        if self._bytes_left < 0:
            raise Refusal(f"the answer would be larger than {_LARGEST_ANSWER >> 20} MiB")
        return value


def _size(value: Any) -> int:
    """About how many bytes a value takes in the answer."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list):
        return sum(map(_size, value))
    if isinstance(value, Mapping):
        return sum(len(name) + _size(item) for name, item in value.items())
    return 8


def _without_undefined(value: Any) -> Any:
    """A variable that was not sent is as if its field had not been written at all."""
    if isinstance(value, dict):
        return {
            key: _without_undefined(item) for key, item in value.items() if item is not Undefined
        }
    if isinstance(value, list):
        return [None if item is Undefined else _without_undefined(item) for item in value]
    return value


def _has_fields(value: Any) -> bool:
    """Whether it holds what is only known when it is asked for."""
    if isinstance(value, Mapping):
        return any(map(_has_fields, value.values()))
    return any(map(_has_fields, value)) if isinstance(value, list) else callable(value)


def _applies(condition: str | None, source: Source) -> bool:
    own = source.get("__typename")
    if condition is None or own is None or condition == own:
        return True
    return not any(condition in pair and own in pair for pair in _ALTERNATIVES)


def _refuse_unknown(mutations: Iterable[str], source: Source) -> None:
    """Before the first is carried out."""
    unknown = [name for name in mutations if name not in source]
    if unknown:
        raise Refusal(f"there is no mutation {unknown[0][:100]!r} here: nothing was changed")


def _note_unknown(place: str) -> None:
    if place not in _seen_unknown and len(_seen_unknown) < 10_000:
        _seen_unknown.add(place)
        log.warning("a client asked for %s, which is not known here: answered null", place)
