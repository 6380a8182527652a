"""A browser that is logged in to the page, without a browser: what it sends, and what it keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.server.asgi import KEY, Answer, Client

SAME_ORIGIN = {"x-runyard": "page", "sec-fetch-site": "same-origin"}


def new_code(client: Client, key: str = KEY) -> str:
    code: str = client.post("/api/login/codes", {}, key=key).json()["code"]
    return code


def log_in(client: Client, code: str, **more: object) -> Answer:
    body = json.dumps({"code": code, **more}).encode()
    return client.request("POST", "/api/login", [body], key=None, headers=SAME_ORIGIN)


class Visitor:
    """A page that somebody opened with the link of `runyard ui`."""

    def __init__(self, client: Client, key: str = KEY) -> None:
        answer = log_in(client, new_code(client, key))
        assert answer.status == 200, answer.text
        self.client = client
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        self.proof: str = answer.json()["proof"]
        self.ticket: str = answer.json()["ticket"]

    def ask(
        self, method: str, path: str, content: object = None, headers: Mapping[str, str] = {}
    ) -> Answer:
        """As the page fetches: with both halves of the session."""
        sent = {**SAME_ORIGIN, "cookie": self.cookie, "x-runyard": self.proof, **headers}
        body = json.dumps(content or {}).encode()
        return self.client.request(method, path, [body], key=None, headers=sent)

    def get(self, path: str) -> Answer:
        return self.ask("GET", path)

    def load(self, path: str, ticket: str | None = None) -> Answer:
        """As an image or a download: the cookie, and the ticket in the address."""
        target = f"{path}?ticket={self.ticket if ticket is None else ticket}"
        sent = {"cookie": self.cookie, "sec-fetch-site": "same-origin"}
        return self.client.request("GET", target, key=None, headers=sent)
