"""Executes GraphQL documents without a schema.

Nobody publishes W&B's schema and it grows with every release, so this walks the selection over
plain mappings: a field that is there is answered, one that is not answers null and is logged once.
Next month's client then works as far as it can.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any

from graphql import GraphQLError as SyntaxTrouble
from graphql import parse, value_from_ast_untyped
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

log = logging.getLogger(__name__)

Source = Mapping[str, Any]
Resolver = Callable[[Mapping[str, Any]], Any | Awaitable[Any]]

# Only between these does a fragment's type decide; elsewhere names differ by client version.
_ALTERNATIVES = (
    frozenset({"Run", "User"}),
    frozenset({"ArtifactSequence", "ArtifactPortfolio"}),
)

_seen_unknown: set[str] = set()


class Refusal(Exception):
    """The client asked for something that cannot be: answered in `errors`, never retried."""


async def execute(
    text: str,
    variables: Mapping[str, Any] | None,
    roots: Mapping[str, Source],
) -> dict[str, Any]:
    """Run the one operation in `text` against `roots['query']` or `roots['mutation']`."""
    try:
        document = _parse(text)
    except SyntaxTrouble as error:
        raise Refusal(error.message) from error
    operation = next(
        (node for node in document.definitions if isinstance(node, OperationDefinitionNode)), None
    )
    if operation is None:
        raise Refusal("the document has no operation")
    walk = _Walk(document, operation, variables or {})
    name = operation.operation.value
    return await walk.select([operation.selection_set], roots[name], name.capitalize())


@lru_cache(maxsize=256)
def _parse(text: str) -> DocumentNode:
    return parse(text, no_location=True)


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

    async def select(
        self, sets: list[SelectionSetNode], source: Source, place: str
    ) -> dict[str, Any]:
        fields: dict[str, list[FieldNode]] = {}
        for selection_set in sets:
            self._collect(selection_set, source, fields)
        answer: dict[str, Any] = {}
        for key, nodes in fields.items():
            answer[key] = await self._field(nodes, source, place)
        return answer

    def _collect(
        self, sets: SelectionSetNode, source: Source, fields: dict[str, list[FieldNode]]
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
                    self._collect(node.selection_set, source, fields)
            elif isinstance(node, FragmentSpreadNode):
                fragment = self._fragments.get(node.name.value)
                if fragment is None:
                    raise Refusal(f"unknown fragment {node.name.value}")
                if _applies(fragment.type_condition.name.value, source):
                    self._collect(fragment.selection_set, source, fields)

    def _is_wanted(self, directives: tuple[DirectiveNode, ...] | list[DirectiveNode]) -> bool:
        for directive in directives:
            condition = self._arguments(directive).get("if")
            if directive.name.value == "include" and not condition:
                return False
            if directive.name.value == "skip" and condition:
                return False
        return True

    def _arguments(self, node: FieldNode | DirectiveNode) -> dict[str, Any]:
        return {
            argument.name.value: value_from_ast_untyped(argument.value, self._variables)
            for argument in node.arguments or ()
        }

    async def _field(self, nodes: list[FieldNode], source: Source, place: str) -> Any:
        first = nodes[0]
        name = first.name.value
        if name not in source:
            _note_unknown(f"{place}.{name}")
            return None
        value = source[name]
        if callable(value):
            value = value(self._arguments(first))
            if inspect.isawaitable(value):
                value = await value
        sets = [node.selection_set for node in nodes if node.selection_set is not None]
        return await self._complete(value, sets, f"{place}.{name}")

    async def _complete(self, value: Any, sets: list[SelectionSetNode], place: str) -> Any:
        if value is None or not sets:
            return value
        if isinstance(value, list):
            return [await self._complete(item, sets, place) for item in value]
        return await self.select(sets, value, place)


def _applies(condition: str | None, source: Source) -> bool:
    own = source.get("__typename")
    if condition is None or own is None or condition == own:
        return True
    return not any(condition in pair and own in pair for pair in _ALTERNATIVES)


def _note_unknown(place: str) -> None:
    if place not in _seen_unknown and len(_seen_unknown) < 10_000:
        _seen_unknown.add(place)
        log.warning("a client asked for %s, which is not known here: answered null", place)
