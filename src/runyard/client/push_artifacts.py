"""The artifacts of a run, sent to another server of W&B's protocol.

What the run logged goes over with its files and aliases, what it used goes over as well, and both
are tied to the run there. Versions that the other side has already keep the aliases of that side.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import json
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from runyard.client.api import Api
from runyard.client.wandb_server import WandbServer, read_headers
from runyard.errors import RunyardError, ServerError
from runyard.shapes.runs import ArtifactRecord, Run

_FILES_AT_ONCE = 200
_REFERENCE = "wandb-artifact://"

_FIND = """
query ArtifactByDigest($entity: String!, $project: String!, $name: String!) {
  project(name: $project, entityName: $entity) { artifact(name: $name) { id state } }
}
"""
_CREATE = """
mutation CreateArtifact($input: CreateArtifactInput!) {
  createArtifact(input: $input) { artifact { id state } }
}
"""
_MANIFEST = """
mutation CreateArtifactManifest($artifactID: ID!, $name: String!, $digest: String!,
    $entityName: String!, $projectName: String!, $runName: String!,
    $type: ArtifactManifestType!, $includeUpload: Boolean!) {
  createArtifactManifest(input: {artifactID: $artifactID, name: $name, digest: $digest,
      entityName: $entityName, projectName: $projectName, runName: $runName, type: $type}) {
    artifactManifest { id file { id uploadUrl @include(if: $includeUpload)
      uploadHeaders @include(if: $includeUpload) } }
  }
}
"""
_FILES = """
mutation CreateArtifactFiles($artifactFiles: [CreateArtifactFileSpecInput!]!,
    $storageLayout: ArtifactStorageLayout!) {
  createArtifactFiles(input: {artifactFiles: $artifactFiles, storageLayout: $storageLayout}) {
    files { edges { node { uploadUrl uploadHeaders artifact { id } } } }
  }
}
"""
_COMMIT = """
mutation CommitArtifact($artifactID: ID!) {
  commitArtifact(input: {artifactID: $artifactID}) { artifact { id digest } }
}
"""
_USE = """
mutation UseArtifact($input: UseArtifactInput!) { useArtifact(input: $input) { artifact { id } } }
"""

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Place:
    """Where a run is on the other side."""

    server: WandbServer
    entity: str
    project: str
    run: str


@dataclass
class Sent:
    """The versions that went over, or would, by name; and the size of what they hold."""

    artifacts: list[str] = field(default_factory=list)
    bytes: int = 0


def plan_artifacts(api: Api, run: Run, place: Place) -> Sent:
    """What a push would send."""
    return _Push(api, run, place, lambda _text: None, lambda _run: False).plan()


def push_artifacts(
    api: Api, run: Run, place: Place, tell: Tell, is_there: Callable[[str], bool]
) -> Sent:
    """Send what the run logged and used; `is_there` says whether the other side has a run."""
    return _Push(api, run, place, tell, is_there).push()


class _Push:
    def __init__(
        self, api: Api, run: Run, place: Place, tell: Tell, is_there: Callable[[str], bool]
    ) -> None:
        self._api, self._run, self._place = api, run, place
        self._tell, self._is_there = tell, is_there
        self._sent = Sent()
        # The other side's ids by our keys; None while one is on its way.
        self._ids: dict[int, str | None] = {}

    def plan(self) -> Sent:
        held = self._api.artifacts.of_run(self._run["key"])
        for record in {
            artifact["key"]: artifact for artifact in (*held["logged"], *held["used"])
        }.values():
            if self._find(record) is None:
                self._note(record)
        return self._sent

    def push(self) -> Sent:
        held = self._api.artifacts.of_run(self._run["key"])
        for record in held["logged"]:
            self._ensure(record, self._place.run)
        for record in held["used"]:
            artifact = self._ensure(record, self._maker(record))
            variables = {
                "entityName": self._place.entity,
                "projectName": self._place.project,
                "runName": self._place.run,
                "artifactID": artifact,
            }
            self._place.server.graphql(_USE, {"input": variables})
        return self._sent

    def _ensure(self, record: ArtifactRecord, maker: str | None) -> str | None:
        """Have a version on the other side, logged by `maker`; its id there."""
        key = record["key"]
        if key in self._ids:
            return self._ids[key]
        self._ids[key] = None
        is_new = self._find(record) is None
        made = self._create(record, maker, is_new)
        if made.get("state") != "COMMITTED":
            self._note(record)
            self._upload(record, made["id"])
        self._ids[key] = made["id"]
        return self._ids[key]

    def _maker(self, record: ArtifactRecord) -> str | None:
        """The run that made a version, if it is there too, under whose name it then goes."""
        maker = record["made_by"]
        is_same = (record["entity"], record["project"]) == (
            self._run["entity"],
            self._run["project"],
        )
        return maker if maker is not None and is_same and self._is_there(maker) else None

    def _project(self, record: ArtifactRecord) -> str:
        """The run's project there, for what is in the run's project here."""
        is_same = record["project"] == self._run["project"]
        return self._place.project if is_same else record["project"]

    def _find(self, record: ArtifactRecord) -> str | None:
        name = f"{record['collection']}:{record['digest']}"
        place = {"entity": self._place.entity, "project": self._project(record), "name": name}
        try:
            answer = self._place.server.graphql(_FIND, place)
        except ServerError:  # One that does not look for digests: it finds the contents itself.
            return None
        artifact = (answer.get("project") or {}).get("artifact") or {}
        return artifact.get("id") if artifact.get("state") == "COMMITTED" else None

    def _create(self, record: ArtifactRecord, maker: str | None, is_new: bool) -> dict[str, Any]:
        names = record["aliases"] if is_new else []
        variables: dict[str, Any] = {
            "entityName": self._place.entity,
            "projectName": self._project(record),
            "artifactTypeName": record["type"],
            "artifactCollectionName": record["collection"],
            "digest": record["digest"],
            "digestAlgorithm": "MANIFEST_MD5",
            "enableDigestDeduplication": True,
            "clientID": secrets.token_hex(64),
            "sequenceClientID": secrets.token_hex(64),
            "aliases": [
                {"artifactCollectionName": record["collection"], "alias": name} for name in names
            ],
            "runName": maker,
            "description": record["description"],
            "metadata": record["metadata"],
            "historyStep": record["history_step"],
            "ttlDurationSeconds": record["ttl"],
            "tags": [{"tagName": tag} for tag in record["tags"]] or None,
        }
        # Older servers know fewer fields.
        known = {name: value for name, value in variables.items() if value is not None}
        answer = self._place.server.graphql(_CREATE, {"input": known}).get("createArtifact") or {}
        return self._need(answer.get("artifact"), record, "id")

    def _upload(self, record: ArtifactRecord, artifact: str) -> None:
        manifest = self._api.artifacts.manifest(record["key"])
        contents: dict[str, dict[str, Any]] = manifest["contents"]
        draft = self._create_manifest(record, artifact, "", upload=False)
        for entry in contents.values():
            if entry.get("ref"):
                entry["ref"] = self._reference(entry["ref"])
        self._send_files(record, artifact, draft["id"], contents)
        text = json.dumps(
            {**manifest, "storagePolicyConfig": {"storageLayout": "V2"}, "contents": contents}
        ).encode()
        digest = base64.b64encode(hashlib.md5(text, usedforsecurity=False).digest()).decode()
        file = self._create_manifest(record, artifact, digest, upload=True).get("file") or {}
        url = self._need(file, record, "uploadUrl")["uploadUrl"]
        headers = read_headers(file.get("uploadHeaders"))
        self._place.server.put(url, io.BytesIO(text), len(text), headers)
        self._place.server.graphql(_COMMIT, {"artifactID": artifact})

    def _create_manifest(
        self, record: ArtifactRecord, artifact: str, digest: str, *, upload: bool
    ) -> Mapping[str, Any]:
        variables = {
            "artifactID": artifact,
            "name": "wandb_manifest.json",
            "digest": digest,
            "entityName": self._place.entity,
            "projectName": self._project(record),
            "runName": self._place.run,
            "type": "FULL",
            "includeUpload": upload,
        }
        answer = self._place.server.graphql(_MANIFEST, variables)
        made = (answer.get("createArtifactManifest") or {}).get("artifactManifest")
        return self._need(made, record, "id")

    def _send_files(
        self,
        record: ArtifactRecord,
        artifact: str,
        manifest: str,
        contents: dict[str, dict[str, Any]],
    ) -> None:
        files = [(name, entry) for name, entry in contents.items() if not entry.get("ref")]
        for first in range(0, len(files), _FILES_AT_ONCE):
            some = files[first : first + _FILES_AT_ONCE]
            specs = [
                {"artifactID": artifact, "name": name, "md5": entry["digest"],
                 "artifactManifestID": manifest}
                for name, entry in some
            ]  # fmt: skip
            variables = {"artifactFiles": specs, "storageLayout": "V2"}
            answer = self._place.server.graphql(_FILES, variables)
            for number, (name, entry), node in self._nodes(record, answer, some, first):
                entry["birthArtifactID"] = (node.get("artifact") or {}).get("id", artifact)
                if node.get("uploadUrl"):  # Without an address it is there already.
                    self._tell(f"{self._title(record)}: file {number} of {len(files)}, {name}")
                    self._send(record, entry["digest"], node)

    def _nodes(
        self,
        record: ArtifactRecord,
        answer: Mapping[str, Any],
        some: list[tuple[str, dict[str, Any]]],
        first: int,
    ) -> Iterator[tuple[int, tuple[str, dict[str, Any]], Mapping[str, Any]]]:
        made = (answer.get("createArtifactFiles") or {}).get("files") or {}
        nodes = [edge.get("node") or {} for edge in made.get("edges") or []]
        if len(nodes) != len(some):
            raise ServerError(
                f"the server at {self._place.server.url} gave {len(nodes)} addresses for "
                f"{len(some)} files of {self._title(record)}"
            )
        numbers = range(first + 1, first + 1 + len(some))
        return zip(numbers, some, nodes, strict=True)

    def _send(self, record: ArtifactRecord, digest: str, node: Mapping[str, Any]) -> None:
        # Over the disk: a model can be larger than memory.
        with tempfile.TemporaryFile() as content:
            size = self._api.artifacts.download(record["entity"], digest, content)
            headers = read_headers(node.get("uploadHeaders"))
            self._place.server.put(node["uploadUrl"], content, size, headers)

    def _reference(self, ref: str) -> str:
        """A reference into another artifact of ours, as one into the same artifact there."""
        if not ref.startswith(_REFERENCE):
            return ref
        ours, _, path = ref.removeprefix(_REFERENCE).partition("/")
        try:
            kind, _, key = bytes.fromhex(ours).decode().partition(":")
            if kind != "Artifact":
                return ref
            record = self._api.artifacts.one(int(key))
            theirs = self._ensure(record, self._maker(record)) or ""
            return f"{_REFERENCE}{base64.b64decode(theirs, validate=True).hex()}/{path}"
        except (ValueError, binascii.Error) as error:
            raise RunyardError(f"the reference {ref[:200]!r} cannot be followed") from error

    def _note(self, record: ArtifactRecord) -> None:
        self._sent.artifacts.append(self._title(record))
        self._sent.bytes += record["size"]

    def _title(self, record: ArtifactRecord) -> str:
        return f"{record['collection']}:v{record['version']}"

    def _need(self, artifact: Any, record: ArtifactRecord, name: str) -> dict[str, Any]:
        if not isinstance(artifact, dict) or not isinstance(artifact.get(name), str):
            raise ServerError(
                f"the server at {self._place.server.url} gave no {name} for {self._title(record)}"
            )
        return artifact
