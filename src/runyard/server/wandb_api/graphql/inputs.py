"""Arguments of GraphQL fields, checked. What is not as it should be is refused, never retried.

Ids are opaque to clients: base64, because they take those of artifacts apart again.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from runyard.server.store.database import LARGEST_KEY
from runyard.server.wandb_api.graphql.request import Refusal

ARTIFACT, COLLECTION, MANIFEST = "Artifact", "ArtifactCollection", "ArtifactManifest"
SWEEP, AGENT = "Sweep", "Agent"


def opaque(kind: str, key: object) -> str:
    return base64.b64encode(f"{kind}:{key}".encode()).decode()


def text_of(kind: str, id_: str) -> str:
    """The text that `opaque` put into an id."""
    try:
        type_, _, text = base64.b64decode(id_, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        type_ = text = ""
    if type_ != kind or not text:
        raise Refusal(f"{id_[:100]!r} is not the id of a thing of type {kind}")
    return text


def key_of(kind: str, id_: str) -> int:
    text = text_of(kind, id_)
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST_KEY))
    if not is_number or not 0 < int(text) <= LARGEST_KEY:
        raise Refusal(f"{id_[:100]!r} is not the id of a thing of type {kind}")
    return int(text)


class Arguments(dict[str, Any]):
    """What a client sent with one field, read by name and kind."""

    def text(self, name: str) -> str | None:
        value = self.get(name)
        if value is not None and not isinstance(value, str):
            raise Refusal(f"{name} is not a text")
        return value

    def texts(self, name: str) -> list[str]:
        """A list of texts. Clients send a single value where a list has one."""
        return self._list(name, str, "texts")

    def object(self, name: str) -> Arguments:
        value = self.get(name)
        if value is not None and not isinstance(value, dict):
            raise Refusal(f"{name} is not an object")
        return value if isinstance(value, Arguments) else Arguments(value or {})

    def objects(self, name: str) -> list[Arguments]:
        return [Arguments(value) for value in self._list(name, dict, "objects")]

    def whole(self, name: str) -> int | None:
        """A whole number that SQLite can hold."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) > LARGEST_KEY:
            raise Refusal(f"{name} is not a whole number")
        return value

    def count(self, name: str, default: int, most: int) -> int:
        """How many of something: clients get no more than `most` at once."""
        value = self.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise Refusal(f"{name} is not a number of things")
        return min(value, most)

    def json(self, name: str) -> str | None:
        """A JSON object in a text, as it was sent."""
        text = self.text(name)
        if text is not None:
            try:
                if not isinstance(json.loads(text), dict):
                    raise ValueError("it is not an object")
            except (ValueError, RecursionError) as error:
                raise Refusal(f"{name} is not JSON: {error}") from error
        return text

    def key(self, name: str, kind: str) -> int | None:
        """The key behind an id."""
        value = self.text(name)
        return key_of(kind, value) if value else None

    def _list(self, name: str, kind: type, word: str) -> list[Any]:
        value = self.get(name)
        values = value if isinstance(value, list) else [] if value is None else [value]
        if not all(isinstance(item, kind) for item in values):
            raise Refusal(f"{name} is not a list of {word}")
        return values
