"""The description of the API that programs read, made of the routes' declarations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypedDict

import msgspec
from starlette.convertors import IntegerConvertor
from starlette.requests import Request
from starlette.responses import Response

from runyard.server.http.answers import answer
from runyard.server.http.routes import EVENTS, JSON, Endpoint, Endpoints
from runyard.server.people.permissions import RUNS
from runyard.version import __version__

api = Endpoints("server")

_TAGS = [
    "server",
    "projects",
    "live",
    "runs",
    "sweeps",
    "agents",
    "jobs",
    "figures",
    "reports",
    "people",
]
_ERROR = {
    "description": "It cannot be done as asked; sending it again changes nothing.",
    "content": {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}},
}
_SECURITY = {
    "key": {
        "type": "http",
        "scheme": "basic",
        "description": "User `api`, password: the key (`runyard env`).",
    },
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "runyard",
        "description": "The page's, after its one-time link (`runyard ui`); with the proof of its "
        "login in the header `X-Runyard`.",
    },
}


class Error(TypedDict):
    """What cannot be done, and what to do next."""

    error: str


def document(routes: Iterable[object]) -> dict[str, Any]:
    """OpenAPI 3.1."""
    endpoints = [route for route in routes if isinstance(route, Endpoint) and route.tag]
    endpoints.sort(key=lambda endpoint: _TAGS.index(endpoint.tag))
    paths: dict[str, dict[str, Any]] = {}
    components: dict[str, Any] = {}
    _schema(Error, components)
    for endpoint in endpoints:
        path = re.sub(r":\w+}", "}", endpoint.path)
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(path, endpoint, components)
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
        "tags": [{"name": tag} for tag in _TAGS],
        "paths": paths,
        "components": {"securitySchemes": _SECURITY, "schemas": components},
    }


def _schema(shape: Any, components: dict[str, Any]) -> dict[str, Any]:
    """As JSON Schema. Shapes with a name go to `components`, and are referred to."""
    if shape is None or isinstance(shape, dict):
        properties = {name: _schema(kind, components) for name, kind in (shape or {}).items()}
        return {"type": "object", "properties": properties, "required": list(properties)}
    (schema,), named = msgspec.json.schema_components(
        [shape], ref_template="#/components/schemas/{name}"
    )
    for component in named.values():
        if "description" in component:
            component["description"] = " ".join(component["description"].split())
    components |= named
    return schema


def _operation(path: str, endpoint: Endpoint, components: dict[str, Any]) -> dict[str, Any]:
    summary = " ".join((endpoint.endpoint.__doc__ or "").split("\n\n")[0].split()).removesuffix(".")
    content: dict[str, Any] = {endpoint.media: {}}
    if endpoint.media in (JSON, EVENTS):
        content[JSON] = {"schema": _schema(endpoint.answer, components)}
    in_path = {
        name: int if isinstance(convertor, IntegerConvertor) else str
        for name, convertor in endpoint.param_convertors.items()
    }
    operation: dict[str, Any] = {
        "tags": [endpoint.tag],
        "summary": summary,
        "operationId": f"{endpoint.method.lower()}_{_words(path)}",
        "parameters": [
            *(_parameter("path", name, kind) for name, kind in in_path.items()),
            *(_parameter("query", name, kind) for name, kind in endpoint.query.items()),
        ],
        "responses": {"200": {"description": summary, "content": content}, "4XX": _ERROR},
    }
    if endpoint.body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {JSON: {"schema": _schema(endpoint.body, components)}},
        }
    return operation


def _parameter(place: str, name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "required": place == "path", "schema": _schema(kind, {})}


def _words(path: str) -> str:
    return re.sub(r"\W+", "_", path.removeprefix("/api")).strip("_")


@api.get("/api/openapi.json", RUNS)
async def show(request: Request) -> Response:
    """This document."""
    return answer(document(request.app.routes))
