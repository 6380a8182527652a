"""The own API's part on artifacts."""

from __future__ import annotations

import base64
import json
import urllib.parse
from typing import Any, BinaryIO

from runyard.client.http import Connection
from runyard.shapes.runs import ArtifactRecord, RunArtifacts


class ArtifactsApi:
    """What runs logged and used, and what is in it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of_run(self, run: int) -> RunArtifacts:
        artifacts: RunArtifacts = self._connection.get(f"/api/runs/{run}/artifacts")
        return artifacts

    def one(self, key: int) -> ArtifactRecord:
        artifact: ArtifactRecord = self._connection.get(f"/api/artifacts/{key}")
        return artifact

    def manifest(self, key: int) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(
            self._connection.get_bytes(f"/api/artifacts/{key}/manifest")
        )
        return content

    def download(self, entity: str, digest: str, into: BinaryIO) -> int:
        """Copy the contents that have this MD5 (in base64); returns their size."""
        md5 = base64.b64decode(digest).hex()
        return self._connection.download(
            f"/artifacts/{urllib.parse.quote(entity, safe='')}/{md5}", into
        )
