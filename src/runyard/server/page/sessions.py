"""Who is logged in to the page: one-time codes, and the sessions that they are exchanged for.

A session is a signed text in a cookie. It names the key that asked for the code and ends with it:
a revoked key takes its open pages along, and nothing of it needs to be stored.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
import time

CODE_SECONDS = 600.0
SESSION_SECONDS = 30 * 24 * 3600
_MOST_CODES = 1_000
_SIGNATURE = 32


class Codes:
    """Codes that log a browser in, once and soon. In memory: a restart forgets them."""

    def __init__(self) -> None:
        self._codes: dict[str, tuple[str, float]] = {}

    def make(self, key_id: str, now: float) -> str:
        self._codes = {code: it for code, it in self._codes.items() if it[1] > now}
        while len(self._codes) >= _MOST_CODES:
            del self._codes[next(iter(self._codes))]
        code = secrets.token_urlsafe(24)
        self._codes[_hash(code)] = (key_id, now + CODE_SECONDS)
        return code

    def take(self, code: str, now: float) -> str | None:
        """The key that a code stands for. It is worth nothing from then on."""
        key_id, end = self._codes.pop(_hash(code), ("", 0.0))
        return key_id if end > now else None


class Sessions:
    """Makes and reads the texts in cookies."""

    def __init__(self, secret: bytes) -> None:
        self._secret = hmac.digest(secret, b"page sessions", "sha256")
        # Cookies do not know ports: two servers behind two tunnels share `localhost`.
        self.cookie = f"runyard-{hmac.digest(secret, b'cookie name', 'sha256').hex()[:10]}"

    def make(self, key_id: str) -> str:
        text = json.dumps([key_id, int(time.time()) + SESSION_SECONDS]).encode()
        return base64.urlsafe_b64encode(self._sign(text) + text).decode().rstrip("=")

    def read(self, token: str) -> str | None:
        """The id of the key behind a session; None if it is not ours, or over."""
        try:
            raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        except (binascii.Error, ValueError):
            return None
        signature, text = raw[:_SIGNATURE], raw[_SIGNATURE:]
        if not hmac.compare_digest(signature, self._sign(text)):
            return None
        key_id, end = json.loads(text)
        return str(key_id) if end > time.time() else None

    def _sign(self, text: bytes) -> bytes:
        return hmac.digest(self._secret, text, "sha256")


def _hash(code: str) -> str:
    # Looked up by its hash, so that how long a look takes says nothing of the codes there are.
    return hashlib.sha256(code.encode()).hexdigest()
