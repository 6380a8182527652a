"""Addresses that authorise themselves: what they stand for, signed, and with an end.

Clients send no key with the bytes of files, neither up nor down.
"""

from __future__ import annotations

import base64
import hmac
import json
import time
from typing import Any

_VALID_SECONDS = 24 * 3600
_SIGNATURE = 32


class BadAddress(ValueError):
    """An address that we did not hand out, or that has expired."""


class Addresses:
    """Makes tokens and reads them. A token of one kind is worth nothing as another."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def token(self, kind: str, *claim: Any) -> str:
        text = json.dumps([*claim, int(time.time()) + _VALID_SECONDS]).encode()
        return base64.urlsafe_b64encode(self._sign(kind, text) + text).decode().rstrip("=")

    def claim(self, kind: str, token: str) -> list[Any]:
        """What `token` was made of."""
        try:
            raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
            signature, text = raw[:_SIGNATURE], raw[_SIGNATURE:]
            if not hmac.compare_digest(signature, self._sign(kind, text)):
                raise ValueError("bad signature")
            claim: list[Any] = json.loads(text)
            end = claim.pop()
        except ValueError as error:
            raise BadAddress("this address was not handed out here") from error
        if end < time.time():
            raise BadAddress("this address has expired")
        return claim

    def _sign(self, kind: str, text: bytes) -> bytes:
        return hmac.digest(self._secret, kind.encode() + b"\0" + text, "sha256")
