"""The description of the API that programs read, made of the catalogue."""

from __future__ import annotations

import re
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.api.catalogue import CATALOGUE, EVENTS, Entry
from runyard.server.http.answers import answer
from runyard.server.http.routes import Endpoint
from runyard.server.people.permissions import RUNS
from runyard.version import __version__

_TYPES: dict[str, dict[str, Any]] = {
    "int": {"type": "integer"},
    "number": {"type": "number"},
    "text": {"type": "string"},
    "bool": {"type": "boolean"},
    "object": {"type": "object"},
    "any": {},
}
_FIELD = re.compile(r"(\w+)(\?)?: ([\[\]\w]+)(\?)?")
_NUMBERS = ("key", "number", "agent")


def document() -> dict[str, Any]:
    """OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for tag, entries in CATALOGUE.items():
        for entry in entries:
            paths.setdefault(entry.path, {})[entry.method.lower()] = _operation(tag, entry)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "runyard",
            "version": __version__,
            "description": "What commands, the page and your own programs ask the server. Errors "
            'are {"error": text} with what to do next; a request that got no answer may be sent '
            "again.",
        },
        "servers": [{"url": "."}],
        "security": [{"key": []}, {"cookie": []}],
        "tags": [{"name": tag} for tag in CATALOGUE],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "User `api`, password: the key (`runyard env`).",
                },
                "cookie": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "runyard",
                    "description": "The page's, after its one-time link (`runyard ui`); "
                    "with the proof of its login in the header `X-Runyard`.",
                },
            },
            "schemas": {
                "Error": {
                    "type": "object",
                    "properties": {"error": {"type": "string"}},
                    "required": ["error"],
                }
            },
        },
    }


def shape(text: str) -> dict[str, Any]:
    """The schema of an object whose fields are written `name: type, name?: type`."""
    fields = [_FIELD.fullmatch(part) for part in text.split(", ")] if text else []
    properties, required = dict[str, Any](), list[str]()
    for field in fields:
        if field is None:
            raise ValueError(f"this shape cannot be read: {text}")
        name, is_optional, kind, is_nullable = field.groups()
        properties[name] = _kind(kind, nullable=bool(is_nullable))
        if not is_optional:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def _kind(word: str, *, nullable: bool = False) -> dict[str, Any]:
    if word.startswith("["):
        return {"type": "array", "items": _kind(word[1:-1])}
    found = _TYPES[word]
    return {**found, "type": [found["type"], "null"]} if nullable and found else dict(found)


def _operation(tag: str, entry: Entry) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "tags": [tag],
        "summary": entry.says,
        "operationId": _name(entry),
        "parameters": [*_in_path(entry.path), *_in_query(entry.query)],
        "responses": {
            "200": _answered(entry),
            "4XX": {
                "description": "It cannot be done as asked; sending it again changes nothing.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    }
    if entry.body:
        schema = shape(entry.body)
        operation["requestBody"] = {
            "required": bool(schema["required"]),
            "content": {"application/json": {"schema": schema}},
        }
    return operation


def _answered(entry: Entry) -> dict[str, Any]:
    if entry.media != "application/json":
        return {"description": entry.says, "content": {entry.media: {}}}
    schema = shape(entry.answer)
    if entry.is_list:
        schema = {"type": "array", "items": schema}
    content: dict[str, Any] = {"application/json": {"schema": schema}}
    if entry.path == "/api/live":
        content[EVENTS] = {}
    return {"description": entry.says, "content": content}


def _in_path(path: str) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": _TYPES["int" if name in _NUMBERS and "/users/" not in path else "text"],
        }
        for name in re.findall(r"{(\w+)}", path)
    ]


def _in_query(query: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in shape(query)["properties"].items()
    ]


def _name(entry: Entry) -> str:
    words = re.sub(r"\W+", "_", entry.path.removeprefix("/api")).strip("_")
    return f"{entry.method.lower()}_{words}"


async def show(_request: Request) -> Response:
    """What the API is, as OpenAPI."""
    return answer(document())


ENDPOINTS = [
    Endpoint("GET", "/api/openapi.json", show, RUNS),
]
