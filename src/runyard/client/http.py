"""One request at a time to runyard's server, over the standard library's HTTP.

`http.client` knows nothing of proxies, which is right: clusters set `http_proxy` for the outside,
and the server is inside. No key goes out on a connection before whoever answers there has proved
that it is our server (`proof.py`).
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.parse
from collections.abc import Iterator
from typing import Any, BinaryIO

from runyard.errors import NotFoundError, ServerError
from runyard.proof import LONGEST_ANSWER, Question
from runyard.trust import open_http

_ANOTHER_PROGRAM = (
    "another program has taken its port, or the server is older than this command: `runyard server "
    "restart --force` starts it anew, at another port if need be"
)


class Unreachable(ServerError):
    """Nobody answered. The request may be sent again: every route of ours is idempotent."""


class Impostor(Unreachable):
    """Another program answers in the server's place; it was sent no key."""


class Connection:
    """A kept-alive connection with the key.

    `name` is the server's address in the state folder, where `url` is another way to it: a door.
    `authority` is the certificate that it is known by, where it speaks TLS.
    """

    def __init__(
        self,
        url: str,
        key: str,
        authority: str = "",
        *,
        timeout: float = 30.0,
        name: str | None = None,
    ) -> None:
        self.url = url
        self._http = open_http(url, authority, timeout)
        self._http.auto_open = 0  # We open it, since there is something to ask first.
        self._key, self._name = key, name or url
        token = base64.b64encode(f"api:{key}".encode()).decode()
        self._headers = {"Authorization": f"Basic {token}"}

    def get(self, path: str, **query: object) -> Any:
        return self.request("GET", path, query=query)

    def get_bytes(self, path: str, **query: object) -> bytes:
        """An answer that is not JSON."""
        return self._answer("GET", path, None, query)

    def post_for_bytes(self, path: str, payload: object) -> bytes:
        """A question that needs a body, whose answer is not JSON."""
        return self._answer("POST", path, payload, {})

    def post(self, path: str, payload: object = None, **query: object) -> Any:
        """Send JSON, or bytes as they are."""
        return self.request("POST", path, payload, query=query)

    def request(
        self, method: str, path: str, payload: object = None, *, query: dict[str, object] | None
    ) -> Any:
        return _content(self._answer(method, path, payload, query or {}), self.url)

    def _answer(self, method: str, path: str, payload: object, query: dict[str, object]) -> bytes:
        parameters = {name: value for name, value in query.items() if value is not None}
        if parameters:
            path = f"{path}?{urllib.parse.urlencode(parameters, doseq=True)}"
        if isinstance(payload, bytes):
            body, kind = payload, "application/octet-stream"
        else:
            body, kind = json.dumps(payload).encode(), "application/json"
        headers = {**self._headers, "Content-Type": kind}
        status, answer = self._exchange(
            method, path, body if payload is not None else None, headers
        )
        if status < 300:
            return answer
        raise _as_error(status, answer, f"{method} {path.split('?')[0]}", self.url)

    def download(self, path: str, into: BinaryIO) -> int:
        """Copy what is at `path`, piece by piece; returns its size."""
        try:
            self._open()
            self._http.request("GET", path, headers=self._headers)
            response = self._http.getresponse()
            if response.status >= 300:
                raise _as_error(response.status, response.read(), f"GET {path}", self.url)
            size = 0
            while piece := response.read(1 << 20):
                into.write(piece)
                size += len(piece)
            return size
        except (OSError, http.client.HTTPException) as error:
            self._http.close()
            raise _broke_off(self.url, error) from error

    def post_for_lines(self, path: str, payload: object) -> Iterator[Any]:
        """An answer that comes line by line, each JSON, for as long as the server works at it."""
        headers = {**self._headers, "Content-Type": "application/json"}
        try:
            self._open()
            self._http.request("POST", path, json.dumps(payload).encode(), headers)
            response = self._http.getresponse()
            if response.status >= 300:
                raise _as_error(response.status, response.read(), f"POST {path}", self.url)
            while line := response.readline():
                yield _content(line, self.url)
        except (OSError, http.client.HTTPException) as error:
            self._http.close()
            raise _broke_off(self.url, error) from error

    def close(self) -> None:
        self._http.close()

    def __del__(self) -> None:
        # Handed about freely and used until the process ends; nobody is the one to close it.
        self._http.close()

    def _open(self) -> None:
        """Connect, if we are not, and let the server prove that it is ours."""
        if self._http.sock is not None:
            return
        try:
            self._http.connect()
        except ssl.SSLCertVerificationError as error:
            raise _no_certificate(error, self.url) from error
        question = Question(self._key, self._name)
        self._http.request("GET", question.path)
        response = self._http.getresponse()
        body = response.read(LONGEST_ANSWER)
        if not question.is_answered_by(body) or self._http.sock is None:
            self._http.close()
            raise _no_proof(response.status, body, self.url)

    def _exchange(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        # A kept-alive connection may have been closed by a restart of the server: try a fresh one.
        tries = 2 if self._http.sock is not None else 1
        while True:
            tries -= 1
            try:
                self._open()
                self._http.request(method, path, body, headers)
                response = self._http.getresponse()
                return response.status, response.read()
            except (OSError, http.client.HTTPException) as error:
                self._http.close()
                if not tries:
                    raise Unreachable(
                        f"the server at {self.url} does not answer",
                        said=error or type(error).__name__,
                        mend="`runyard server status` says more",
                    ) from error


def _no_certificate(error: ssl.SSLCertVerificationError, url: str) -> Impostor:
    return Impostor(
        f"what answers at {url} is not runyard's server: its certificate is not of the state "
        "folder's authority, and nothing was sent",
        said=error.verify_message,
        mend=_ANOTHER_PROGRAM,
    )


def _no_proof(status: int, answer: bytes, url: str) -> ServerError | NotFoundError:
    if status == 404:
        return _as_error(401, answer, "", url)
    if status == 503:  # Our own, which is on its way out or not there yet; or it is all the same.
        return Unreachable(
            f"the server at {url} is not ready",
            said=_said(answer),
            mend="repeat the command in a moment; `runyard server status` says more",
        )
    return Impostor(
        f"what answers at {url} is not runyard's server: it cannot prove that it knows the key, "
        "which was not sent",
        said=f"status {status}: {_said(answer)}",
        mend=_ANOTHER_PROGRAM,
    )


def _said(answer: bytes) -> str:
    return answer[:60].decode(errors="replace")


def _broke_off(url: str, error: Exception) -> Unreachable:
    return Unreachable(
        f"the server at {url} broke off",
        said=error or type(error).__name__,
        mend="repeat the command",
    )


def _content(answer: bytes, url: str) -> Any:
    try:
        return json.loads(answer) if answer else None
    except ValueError as error:
        raise ServerError(
            f"what answers at {url} is not runyard's server",
            said=_said(answer),
            mend="another program may have taken its port: `runyard server status` says more",
        ) from error


def _as_error(status: int, answer: bytes, what: str, url: str) -> ServerError | NotFoundError:
    try:
        reason = json.loads(answer).get("error")
    except (ValueError, AttributeError):
        reason = answer[:200].decode(errors="replace")
    if status == 404:
        return NotFoundError(str(reason))
    if status == 401:
        return ServerError(
            f"the server at {url} refused the key",
            said=reason,
            mend="another program may have taken its port: `runyard server status` says more",
        )
    if status in (403, 409):
        return ServerError(str(reason))  # It says what, and of which name.
    if status == 503:
        return ServerError(
            f"the server at {url} cannot do that now",
            said=reason,
            mend="mend what it says; nothing is lost, and the command can be repeated",
        )
    return ServerError(f"the server answered {status} to {what}", said=reason)


class ApiPart:
    """The calls of one subject."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
