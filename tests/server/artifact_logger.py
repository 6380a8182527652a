"""Logs artifacts as a client does, one request after the other."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from tests.server.asgi import KEY, Answer, Client

CREATE = """mutation CreateArtifact($input: I!) { createArtifact(input: $input) { artifact {
  id state versionIndex artifactSequence { id latestArtifact { id versionIndex } } } } }"""
MANIFEST = """mutation CreateArtifactManifest($input: I!, $includeUpload: Boolean!) {
  createArtifactManifest(input: $input) { artifactManifest { id file { id
    uploadUrl @include(if: $includeUpload) uploadHeaders @include(if: $includeUpload) } } } }"""
UPDATE_MANIFEST = """mutation UpdateArtifactManifest($input: I!) {
  updateArtifactManifest(input: $input) { artifactManifest { id file { id uploadUrl } } } }"""
FILES = """mutation CreateArtifactFiles($input: I!) { createArtifactFiles(input: $input) { files {
  edges { node { name displayName storagePath uploadUrl uploadHeaders artifact { id }
    uploadMultipartUrls { uploadID uploadUrlParts { partNumber uploadUrl } } } } } } }"""
COMMIT = """mutation CommitArtifact($id: ID!) { commitArtifact(input: {artifactID: $id}) {
  artifact { id digest } } }"""
BY_NAME = """query ArtifactByName($name: String!, $entity: String, $project: String = "birds") {
  project(name: $project, entityName: $entity) { artifact(name: $name) {
    id state digest size fileCount versionIndex description metadata ttlDurationSeconds
    ttlIsInherited createdAt artifactType { name } tags { name }
    artifactSequence { name project { name entityName internalId } }
    aliases { alias artifactCollection { name project { name entityName } } }
    currentManifest { file { directUrl } }
    createdBy { ... on Run { name } } usedBy { edges { node { name } } }
    files { edges { node { name directUrl url sizeBytes digest } cursor }
      pageInfo { hasNextPage endCursor } } } } }"""


def md5(content: bytes) -> str:
    return base64.b64encode(hashlib.md5(content).digest()).decode()


def manifest_of(files: Mapping[str, bytes], **references: str) -> dict[str, Any]:
    contents: dict[str, Any] = {
        name: {"digest": md5(content), "size": len(content), "local_path": f"/home/ada/{name}"}
        for name, content in files.items()
    }
    contents |= {name: {"digest": ref, "ref": ref, "size": 0} for name, ref in references.items()}
    return {
        "version": 1,
        "storagePolicy": "wandb-storage-policy-v1",
        "storagePolicyConfig": {"storageLayout": "V2"},
        "contents": contents,
    }


def digest_of(manifest: Mapping[str, Any]) -> str:
    text = "wandb-artifact-manifest-v1\n" + "".join(
        f"{name}:{entry['digest']}\n" for name, entry in sorted(manifest["contents"].items())
    )
    return hashlib.md5(text.encode()).hexdigest()


class Logger:
    """A client that logs to the project `birds` of whose key it has: ada's, if not told."""

    def __init__(self, client: Client, *, key: str = KEY) -> None:
        self.client, self._key = client, key

    def ask(self, query: str, **variables: Any) -> Any:
        answer = self.client.graphql(query, variables, key=self._key)
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    def refused(self, query: str, **variables: Any) -> str:
        """Why it was refused."""
        message: str = self.client.graphql(query, variables, key=self._key)["errors"][0]["message"]
        return message

    def create(self, name: str = "data", digest: str = "d1", **more: Any) -> dict[str, Any]:
        given = {
            "projectName": "birds",
            "artifactTypeName": "dataset",
            "artifactCollectionName": name,
            "digest": digest,
            "digestAlgorithm": "MANIFEST_MD5",
            "enableDigestDeduplication": True,
            "aliases": [{"artifactCollectionName": name, "alias": "latest"}],
            **more,
        }
        artifact: dict[str, Any] = self.ask(CREATE, input=given)["createArtifact"]["artifact"]
        return artifact

    def announce(self, artifact: str, files: Mapping[str, bytes]) -> list[dict[str, Any]]:
        """`createArtifactFiles`: one node a file."""
        specs = [
            {"artifactID": artifact, "name": name, "md5": md5(content)}
            for name, content in files.items()
        ]
        given = {"artifactFiles": specs, "storageLayout": "V2"}
        edges = self.ask(FILES, input=given)["createArtifactFiles"]["files"]["edges"]
        return [edge["node"] for edge in edges]

    def upload(self, artifact: str, files: Mapping[str, bytes]) -> int:
        """Send the contents that the server asks for; says how many those were."""
        sent = 0
        nodes = self.announce(artifact, files)
        for node, content in zip(nodes, files.values(), strict=True):
            if node["uploadUrl"] is not None:
                assert self.client.put(node["uploadUrl"], content).status == 200
                sent += 1
        return sent

    def send_manifest(
        self, artifact: str, manifest: Mapping[str, Any], kind: str = "FULL", **more: Any
    ) -> Answer:
        text = json.dumps(manifest).encode()
        given = {"artifactID": artifact, "name": "wandb_manifest.json", "digest": md5(text),
                 "type": kind, **more}  # fmt: skip
        made = self.ask(MANIFEST, input=given, includeUpload=True)["createArtifactManifest"]
        return self.client.put(made["artifactManifest"]["file"]["uploadUrl"], text)

    def commit(self, artifact: str) -> str:
        """Commit; the digest that came of it."""
        digest: str = self.ask(COMMIT, id=artifact)["commitArtifact"]["artifact"]["digest"]
        return digest

    def log(self, files: Mapping[str, bytes], name: str = "data", **more: Any) -> dict[str, Any]:
        """The whole flow; what the version then looks like by its id's aliases."""
        manifest = manifest_of(files)
        artifact = self.create(name, digest_of(manifest), **more)
        if artifact["state"] == "PENDING":
            self.upload(artifact["id"], files)
            assert self.send_manifest(artifact["id"], manifest).status == 200
            self.commit(artifact["id"])
        return self.find(f"{name}:{digest_of(manifest)}") or {}

    def find(self, name: str, **variables: Any) -> dict[str, Any] | None:
        project = self.ask(BY_NAME, name=name, **variables)["project"] or {}
        found: dict[str, Any] | None = project.get("artifact")
        return found

    def names(self, name: str) -> list[str]:
        """The aliases of a version."""
        found = self.find(name)
        assert found is not None, name
        return [alias["alias"] for alias in found["aliases"]]

    def manifest(self, name: str) -> dict[str, Any]:
        found = self.find(name)
        assert found is not None
        answer = self.download(found["currentManifest"]["file"]["directUrl"])
        assert answer.status == 200, answer.text
        content: dict[str, Any] = answer.json()
        return content

    def contents(self, name: str) -> dict[str, bytes]:
        """The stored files of a version, downloaded without a key."""
        found = self.find(name)
        assert found is not None
        nodes = [edge["node"] for edge in found["files"]["edges"]]
        return {
            node["name"]: self.download(node["directUrl"]).body
            for node in nodes
            if node["directUrl"]
        }

    def download(self, url: str, **headers: str) -> Answer:
        path = "/" + url.split("/", 3)[3]
        return self.client.request("GET", path, key=None, headers=headers)
