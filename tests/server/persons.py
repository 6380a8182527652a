"""People with keys of their own, at one server."""

from __future__ import annotations

from typing import Any

from tests.server.asgi import Answer, Client

UPSERT = """
mutation UpsertBucket($id: String, $name: String, $project: String, $entity: String,
    $displayName: String, $notes: String, $groupName: String, $config: JSONString, $host: String,
    $tags: [String!], $state: String, $summaryMetrics: JSONString) {
  upsertBucket(input: {id: $id, name: $name, modelName: $project, entityName: $entity,
      displayName: $displayName, notes: $notes, groupName: $groupName, config: $config, host: $host,
      tags: $tags, state: $state, summaryMetrics: $summaryMetrics}) {
    bucket { id name displayName notes group state config summaryMetrics tags historyLineCount
      project { name entity { name } } }
    inserted
  }
}
"""


class Person:
    """Somebody with a key, at the server."""

    def __init__(self, client: Client, name: str, key: str) -> None:
        self.client, self.name, self.key = client, name, key

    def get(self, path: str, **query: object) -> Answer:
        return self.client.get(path, key=self.key, **query)

    def post(self, path: str, content: object) -> Answer:
        return self.client.post(path, content, key=self.key)

    def delete(self, path: str) -> Answer:
        return self.client.request("DELETE", path, key=self.key)

    def put(self, path: str) -> Answer:
        return self.client.request("PUT", path, key=self.key)

    def ask(self, document: str, /, **variables: Any) -> dict[str, Any]:
        answer = self.post("/graphql", {"query": document, "variables": variables})
        assert answer.status == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def log(self, run: str, entity: str | None = None, **variables: Any) -> dict[str, Any]:
        return self.ask(UPSERT, name=run, project="birds", entity=entity, host="node1", **variables)

    def stream(self, entity: str, run: str) -> int:
        return self.post(f"/files/{entity}/birds/{run}/file_stream", {"files": {}}).status

    def runs(self) -> set[str]:
        return {run["id"] for run in self.get("/api/runs").json()}


def add_person(admin: Person, name: str) -> Person:
    made = admin.post("/api/users", {"name": name})
    assert made.status == 200, made.text
    return Person(admin.client, name, made.json()["key"])


def make_team(maker: Person, name: str, *others: Person) -> None:
    """A team that everybody has joined."""
    made = maker.post("/api/teams", {"name": name, "members": [other.name for other in others]})
    assert made.status == 200, made.text
    for other in others:
        assert other.put(f"/api/teams/{name}/members/{other.name}").status == 200
