"""The own API's part on artifacts."""

from __future__ import annotations

import base64
import json
import urllib.parse
from typing import Any, BinaryIO

from runyard.client.http import ApiPart
from runyard.shapes.runs import ArtifactRecord, RunArtifacts


class ArtifactsApi(ApiPart):
    """What runs logged and used, and what is in it."""

    def of_run(self, run: int) -> RunArtifacts:
        return self._connection.get(f"/api/runs/{run}/artifacts")

    def one(self, key: int) -> ArtifactRecord:
        return self._connection.get(f"/api/artifacts/{key}")

    def manifest(self, key: int) -> dict[str, Any]:
        return json.loads(self._connection.get_bytes(f"/api/artifacts/{key}/manifest"))

    def download(self, entity: str, digest: str, into: BinaryIO) -> int:
        """Copy the contents that have this MD5 (in base64); returns their size."""
        md5 = base64.b64decode(digest).hex()
        return self._connection.download(
            f"/artifacts/{urllib.parse.quote(entity, safe='')}/{md5}", into
        )
