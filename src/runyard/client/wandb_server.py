"""Any server that speaks W&B's protocol, asked over the standard library's HTTP.

Unlike `client.http` this goes through proxies and TLS: it may well be W&B's own cloud.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any, BinaryIO

from runyard.client.keys import netloc
from runyard.errors import RunyardError, ServerError

EMBEDDED = "embedded"
CLOUD = "https://api.wandb.ai"
_TRIES = 6
_SECONDS = 60.0
_VIEWER = "query Viewer { viewer { id entity username } }"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """urllib would take the key along to wherever it is sent."""

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        return None


class KeyRefused(ServerError):
    """The server answers, and does not know the key."""


def target_url(words: str) -> str:
    """The address that `cloud` or a URL stands for."""
    if words == "cloud":
        return CLOUD
    parts = urllib.parse.urlsplit(words)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise RunyardError(
            f"{words!r} is not a server's address",
            mend="give http://HOST:PORT, https://HOST or cloud",
        )
    return words.rstrip("/")


def other_server(server: str, **known: str | None) -> dict[str, str] | None:
    """What is known of a server that programs are to log to; None for our own."""
    if server == EMBEDDED:
        return None
    settings = {"url": target_url(server), **known}
    return {name: value for name, value in settings.items() if value}


def read_headers(lines: Any) -> dict[str, str]:
    """The headers that a server wants with an upload: `NAME:VALUE` each."""
    headers = (text.partition(":") for text in lines or () if isinstance(text, str))
    return {name: value.strip() for name, colon, value in headers if colon}


class WandbServer:
    """One server and a key to it."""

    def __init__(self, url: str, key: str, *, tries: int = _TRIES) -> None:
        self.url = url
        self._tries = tries
        self._opener = urllib.request.build_opener(_NoRedirect)
        token = base64.b64encode(f"api:{key}".encode()).decode()
        self._headers = {"Authorization": f"Basic {token}", "User-Agent": "runyard"}

    def viewer(self) -> Mapping[str, Any]:
        """The user whom the key belongs to."""
        viewer = self.graphql(_VIEWER, {}).get("viewer")
        if not viewer:
            raise KeyRefused(f"the server at {self.url} does not know the key")
        return viewer

    def is_runyard(self) -> bool:
        """Whether the server is one of runyard's, which has a page to log in to."""
        health = self.ask("/api/health")
        return isinstance(health, dict) and "running" in health

    def login_code(self) -> dict[str, Any]:
        """A code that logs one browser in to a runyard server's page."""
        code = self._post("/api/login/codes", {})
        if "code" not in code:
            raise ServerError(f"the server at {self.url} has no page of runyard's")
        return code

    def graphql(self, query: str, variables: Mapping[str, Any]) -> dict[str, Any]:
        answer = self._post("/graphql", {"query": query, "variables": variables})
        if answer.get("errors"):
            first = answer["errors"][0]
            message = first.get("message") if isinstance(first, dict) else first
            raise ServerError(f"the server at {self.url} refused a request", said=message)
        return answer.get("data") or {}

    def file_stream(self, entity: str, project: str, run: str, body: Mapping[str, Any]) -> None:
        place = "/".join(urllib.parse.quote(part, safe="") for part in (entity, project, run))
        self._post(f"/files/{place}/file_stream", body)

    def ask(self, path: str) -> Any:
        """What stands under an address, as JSON; None where there is no such thing."""
        request = urllib.request.Request(self.url + path, headers=self._headers)  # noqa: S310 - http.
        try:
            with self._opener.open(request, timeout=_SECONDS) as response:
                return json.loads(response.read())
        except (OSError, ValueError):
            return None

    def put(self, url: str, content: BinaryIO, size: int, headers: Mapping[str, str]) -> None:
        """Upload to an address that the server handed out; it carries its own permission."""
        content_type = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        where = urllib.parse.urljoin(self.url, url)

        def request() -> urllib.request.Request:
            content.seek(0)
            return urllib.request.Request(  # noqa: S310 - The same.
                where, content if size else b"", {**content_type, **headers}, method="PUT"
            )

        self._send(request)

    def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        data = json.dumps(body).encode()
        headers = {**self._headers, "Content-Type": "application/json"}
        answer = self._send(
            lambda: urllib.request.Request(self.url + path, data, headers)  # noqa: S310 - The same.
        )
        try:
            content = json.loads(answer or b"{}")
        except ValueError as error:
            raise ServerError(
                f"what answers at {self.url} does not speak W&B's protocol",
                said=answer[:60].decode(errors="replace"),
            ) from error
        return content if isinstance(content, dict) else {}

    def _send(self, request: Any) -> bytes:
        """Send, and again where the trouble may pass; every message may be sent twice."""
        for tried in range(1, self._tries + 1):
            try:
                with self._opener.open(request(), timeout=_SECONDS) as response:
                    return response.read()
            except urllib.error.HTTPError as error:
                reason = error.read()[:200].decode(errors="replace")
                if error.code == 401:
                    raise KeyRefused(
                        f"the server at {self.url} refused the key", said=reason
                    ) from error
                passes = error.code >= 500 or error.code in (408, 409, 429)
                if not passes or tried == self._tries:
                    raise ServerError(
                        f"the server at {self.url} answered {error.code}", said=reason
                    ) from error
            except (OSError, ValueError) as error:  # ValueError: half an answer.
                if tried == self._tries:
                    raise ServerError(
                        f"the server at {self.url} does not answer",
                        said=getattr(error, "reason", error),
                        mend=f"check that this machine reaches {netloc(self.url)}",
                    ) from error
            time.sleep(min(0.5 * 2**tried, 10.0))
        raise AssertionError("unreachable")
