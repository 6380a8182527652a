"""The opaque ids that clients hold: base64, because they take artifacts' ids apart again."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from runyard.server.store.database import LARGEST_KEY
from runyard.server.wandb_api.graphql.inputs import as_text
from runyard.server.wandb_api.graphql.source import Refusal

ARTIFACT, COLLECTION, MANIFEST = "Artifact", "ArtifactCollection", "ArtifactManifest"
RUN, SWEEP, AGENT = "Run", "Sweep", "Agent"


def opaque(kind: str, key: object) -> str:
    return base64.b64encode(f"{kind}:{key}".encode()).decode()


def text_of(kind: str, id_: str) -> str:
    """What `opaque` was given."""
    try:
        found, _, text = base64.b64decode(id_, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        found = text = ""
    if found != kind or not text:
        raise Refusal(f"{id_[:100]!r} is not the id of a thing of type {kind}")
    return text


def key_of(kind: str, id_: str) -> int:
    text = text_of(kind, id_)
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST_KEY))
    if not is_number or not 0 < int(text) <= LARGEST_KEY:
        raise Refusal(f"{id_[:100]!r} is not the id of a thing of type {kind}")
    return int(text)


def as_key(given: Mapping[str, Any], name: str, kind: str) -> int | None:
    """The key behind an id among the arguments."""
    value = as_text(given, name)
    return None if not value else key_of(kind, value)
