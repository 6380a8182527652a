"""The opaque ids that clients hold: base64, because they take artifacts' ids apart again."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from runyard.server.graphql.executor import Refusal
from runyard.server.graphql.inputs import as_text

ARTIFACT, COLLECTION, MANIFEST = "Artifact", "ArtifactCollection", "ArtifactManifest"
SWEEP, AGENT = "Sweep", "Agent"
_LARGEST_KEY = 2**63 - 1


def opaque(kind: str, key: object) -> str:
    return base64.b64encode(f"{kind}:{key}".encode()).decode()


def key_of(kind: str, id_: str) -> int:
    try:
        found, _, key = base64.b64decode(id_, validate=True).decode().partition(":")
        if found == kind and 0 < int(key) <= _LARGEST_KEY:
            return int(key)
    except (binascii.Error, ValueError):
        pass
    raise Refusal(f"{id_[:100]!r} is not the id of an {kind}")


def as_key(given: Mapping[str, Any], name: str, kind: str) -> int | None:
    """The key behind an id among the arguments."""
    value = as_text(given, name)
    return None if not value else key_of(kind, value)
