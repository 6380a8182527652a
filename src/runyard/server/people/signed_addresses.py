"""Addresses that authorise themselves: who asked for them and for what, signed, and with an end.

Clients send no key with the bytes of files, neither up nor down.
"""

from __future__ import annotations

import base64
import hmac
import json
import time
from enum import Enum
from typing import Any

# As clients call it, and as they look for it in addresses.
MANIFEST_NAME = "wandb_manifest.json"
_VALID_SECONDS = 24 * 3600
_SIGNATURE = 32


class Kind(Enum):
    """What an address is good for, by the path that it begins with."""

    RUN_FILE_UP = "/uploads"
    BLOB_UP = "/uploads/artifacts"
    MANIFEST_UP = "/uploads/manifests"
    # W&B's own word: its clients tell the files of artifacts by it from others.
    BLOB_DOWN = "/downloads/wandb_artifacts"
    MANIFEST_DOWN = "/downloads/manifests"
    HISTORY_DOWN = "/downloads/history"


class BadAddress(ValueError):
    """An address that we did not hand out, or that has expired."""


class Addresses:
    """Makes addresses and reads them. The token of one kind is worth nothing as another."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def url(self, base_url: str, kind: Kind, key_id: str, *claim: Any) -> str:
        """For whoever has the key of that id, as long as they have it."""
        text = json.dumps([*claim, key_id, int(time.time()) + _VALID_SECONDS]).encode()
        token = base64.urlsafe_b64encode(self._sign(kind, text) + text).decode().rstrip("=")
        return f"{base_url}{kind.value}/{token}"

    def read(self, kind: Kind, token: str) -> tuple[str, list[Any]]:
        """The id of the key that asked for it, and what for."""
        try:
            raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
            signature, text = raw[:_SIGNATURE], raw[_SIGNATURE:]
            if not hmac.compare_digest(signature, self._sign(kind, text)):
                raise ValueError("bad signature")
            claim: list[Any] = json.loads(text)
            end, key_id = claim.pop(), claim.pop()
        except ValueError as error:
            raise BadAddress("this address was not handed out here") from error
        if end < time.time():
            raise BadAddress("this address has expired")
        return key_id, claim

    def _sign(self, kind: Kind, text: bytes) -> bytes:
        return hmac.digest(self._secret, kind.value.encode() + b"\0" + text, "sha256")
