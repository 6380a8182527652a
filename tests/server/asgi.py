"""A caller without sockets: hands requests to the application and collects what it answers.

Sockets, and the web server between them and the application, are in the live tests.
"""

from __future__ import annotations

import asyncio
import base64
import json
import urllib.parse
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.types import ASGIApp, Message, Scope

from runyard.server.people.api_keys import hash_key, key_id

T = TypeVar("T")
KEY = "k" * 40
KEY_ID = key_id(hash_key(KEY))


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        """Strictly: a bare NaN is not JSON."""
        return json.loads(self.body, parse_constant=_refuse)


def _refuse(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")


def basic(key: str) -> str:
    return "Basic " + base64.b64encode(f"api:{key}".encode()).decode()


class Client:
    """Speaks to the application as a wandb client or a command of ours would, with the key."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._loop = asyncio.new_event_loop()

    def close(self) -> None:
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def get(self, path: str, *, key: str | None = KEY, **query: object) -> Answer:
        if query:
            path = f"{path}?{urllib.parse.urlencode(query)}"
        return self.request("GET", path, key=key)

    def post(self, path: str, content: object, *, key: str | None = KEY) -> Answer:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        return self.request("POST", path, [body], key=key)

    def put(self, url: str, *pieces: bytes, cut: bool = False) -> Answer:
        """Upload to an address that the server handed out; no key, as clients do."""
        path = urllib.parse.urlsplit(url).path
        return self.request("PUT", path, pieces or (b"",), key=None, cut=cut)

    def graphql(
        self,
        query: str,
        variables: Mapping[str, Any] | None = None,
        *,
        key: str = KEY,
        **more: object,
    ) -> dict[str, Any]:
        content = {"query": query, "variables": variables, **more}
        answer = self.post("/graphql", content, key=key)
        assert answer.status == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def request(
        self,
        method: str,
        path: str,
        pieces: Sequence[bytes] = (b"",),
        *,
        key: str | None = KEY,
        headers: Mapping[str, str] | None = None,
        cut: bool = False,
    ) -> Answer:
        """One request; with `cut` the connection breaks instead of the body's end."""
        exchange = self.exchange(method, path, pieces, key=key, headers=headers, cut=cut)
        return self._loop.run_until_complete(exchange)

    def together(self, *exchanges: Awaitable[T]) -> list[T]:
        """Several at once."""

        async def all_of_them() -> list[T]:
            return await asyncio.gather(*exchanges)

        return self._loop.run_until_complete(all_of_them())

    async def exchange(
        self,
        method: str,
        path: str,
        pieces: Sequence[bytes] = (b"",),
        *,
        key: str | None = KEY,
        headers: Mapping[str, str] | None = None,
        cut: bool = False,
    ) -> Answer:
        """`request`, for who has several at once."""
        given = {"host": "yard.example:8123", **(headers or {})}
        if key is not None:
            given.setdefault("authorization", basic(key))
        target, _, query = path.partition("?")
        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": urllib.parse.unquote(target),
            "raw_path": target.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items()],
            "client": ("127.0.0.1", 40000),
            "server": ("127.0.0.1", 8123),
        }
        return await _exchange(self._app, scope, pieces, cut)


async def _exchange(app: ASGIApp, scope: Scope, pieces: Sequence[bytes], cut: bool) -> Answer:
    incoming: list[Message] = [
        {"type": "http.request", "body": piece, "more_body": cut or number + 1 < len(pieces)}
        for number, piece in enumerate(pieces)
    ]
    outgoing: list[Message] = []

    async def receive() -> Message:
        if incoming:
            return incoming.pop(0)
        if not cut:  # The client waits for its answer.
            await asyncio.sleep(3600)
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        outgoing.append(message)

    await app(scope, receive, send)
    if not outgoing:
        return Answer(0, {}, b"")
    headers = {name.decode(): value.decode() for name, value in outgoing[0]["headers"]}
    body = b"".join(message.get("body", b"") for message in outgoing[1:])
    return Answer(outgoing[0]["status"], headers, body)
