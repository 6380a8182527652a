"""Goes through every field of everything that one caller can reach in the GraphQL API.

The walk calls the server's own resolvers, so no field and no path is left out because a test does
not know of it. An object is gone through once for each field that leads to it.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runyard.server.people.permissions import Caller
from runyard.server.wandb_api.fields import root_fields
from runyard.server.wandb_api.graphql import inputs
from runyard.server.wandb_api.graphql.request import Refusal, Request, Source
from tests.doors import markers
from tests.doors.world import GHOST, World

BASE_URL = "http://yard.example"
Arguments = Mapping[str, Any]
Texts = frozenset[str]
_NOTHING: Texts = frozenset()
_PLACEHOLDER = re.compile(r"\$(\w+)")


class Probe(inputs.Arguments):
    """Arguments that remember by which names they were asked for."""

    def __init__(self, values: Arguments, asked: set[str]) -> None:
        super().__init__(values)
        self.asked = asked

    def get(self, name: str, default: Any = None) -> Any:
        self.asked.add(name)
        value = super().get(name, default)
        return Probe(value, self.asked) if type(value) is dict else value


@dataclass
class Walk:
    world: World
    person: str
    caller: Caller
    # Which arguments a field is asked with, by Type.field; by default, with none.
    arguments: Mapping[str, Sequence[Arguments]]
    leaks: list[str] = field(default_factory=list)
    types: dict[str, set[str]] = field(default_factory=dict)
    shapes: set[frozenset[str]] = field(default_factory=set)
    asked: dict[str, set[str]] = field(default_factory=dict)
    urls: set[str] = field(default_factory=set)
    # Secret texts that the caller has sent with a change: to read them again tells nothing.
    said: set[str] = field(default_factory=set)
    calls: int = 0
    # Secret texts that were read, with their audiences.
    sights: dict[str, str] = field(default_factory=dict)
    _seen: set[tuple[str, str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        request = Request(self.world.tracker, self.caller, BASE_URL)
        self.roots = root_fields.roots(request)

    async def queries(self) -> None:
        await self._visit(self.roots["query"](""), "Query", "", _NOTHING)

    async def mutate(self, name: str, given: Arguments) -> str | None:
        """Calls a mutation and goes through its result; the words of a refusal."""
        self.said |= _texts(given)
        resolve = self.roots["mutation"]("")[name]
        return await self._call(resolve, {"input": given}, ("Mutation", name), _NOTHING)

    async def _visit(self, source: Source, place: str, via: str, said: Texts) -> None:
        kind = str(source.get("__typename") or place)
        self.types.setdefault(kind, set()).update(source)
        self.shapes.add(frozenset(source))
        if "id" in source:
            known = (kind, str(source["id"]), via)
            if known in self._seen:
                return
            self._seen.add(known)
        for name, value in source.items():
            if callable(value):
                for given in self.arguments.get(f"{kind}.{name}", ({},)):
                    await self._call(value, given, (kind, name), said)
            else:
                await self._complete(value, f"{kind}.{name}", said)

    async def _call(
        self, resolve: Any, given: Arguments, place: tuple[str, str], said: Texts
    ) -> str | None:
        self.calls += 1
        said |= _texts(given)
        asked = self.asked.setdefault(".".join(place), set())
        try:
            value = resolve(Probe(given, asked))
            if inspect.isawaitable(value):
                value = await value
        except Refusal as refusal:
            self._look(str(refusal), f"{'.'.join(place)} refusing {given}", said)
            return str(refusal)
        await self._complete(value, ".".join(place), said)
        return None

    async def _complete(self, value: Any, place: str, said: Texts) -> None:
        several = value if isinstance(value, list) else [value]
        if several and all(isinstance(one, Mapping) and _is_source(one) for one in several):
            for one in several:
                await self._visit(one, place, place, said)
        else:
            self._look(value, place, said)

    def _look(self, value: Any, place: str, said: Texts) -> None:
        if value is None or isinstance(value, bool | int | float):
            return
        if isinstance(value, str) and value.startswith(BASE_URL):
            self.urls.add(value.removeprefix(BASE_URL))
        found = markers.find(json.dumps(value, default=str).encode())
        # What the caller has sent, and gets back, tells nothing.
        learnt = {text: who for text, who in found.items() if text not in said | self.said}
        self.sights |= learnt
        for text, audience in learnt.items():
            if not markers.may_see(self.person, audience):
                self.leaks.append(f"{self.person} sees {text} by {place}")


def _texts(given: Arguments) -> Texts:
    return frozenset(markers.find(json.dumps(given).encode()))


def _is_source(value: Mapping[str, Any]) -> bool:
    """Whether a mapping has fields of its own; else it is JSON that somebody logged."""
    return bool(value) and (
        "__typename" in value or any(map(callable, value.values())) or not _is_json(value)
    )


def _is_json(value: Mapping[str, Any]) -> bool:
    return "sets" in value or any(markers.find(name.encode(), depth=0) for name in value)


def expand(template: Any, things: Mapping[str, Any]) -> Any:
    """A template with `$name` replaced by what somebody has under that name."""
    if isinstance(template, str):
        if template[:1] == "$" and template[1:] in things:
            return things[template[1:]]
        return _PLACEHOLDER.sub(lambda match: str(things.get(match[1], match[0])), template)
    if isinstance(template, Mapping):
        return {name: expand(value, things) for name, value in template.items()}
    if isinstance(template, list | tuple):
        return [expand(value, things) for value in template]
    return template


def placeholders(template: Any) -> Iterator[str]:
    if isinstance(template, str):
        yield from (name for name in _PLACEHOLDER.findall(template) if name in GHOST)
    elif isinstance(template, Mapping):
        for value in template.values():
            yield from placeholders(value)
    elif isinstance(template, list | tuple):
        for value in template:
            yield from placeholders(value)
