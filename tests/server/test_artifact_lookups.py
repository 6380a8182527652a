"""Artifacts found, listed, linked, changed and deleted; and who made and used them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.artifact_logger import Logger
from tests.server.asgi import Client
from tests.server.conftest import Upsert
from tests.server.persons import Person

PROJECT = 'project(name: "birds")'


@pytest.fixture
def logger(client: Client) -> Logger:
    return Logger(client)


def _change(logger: Logger, mutation: str, selection: str, /, **given: Any) -> Any:
    query = f"mutation ($input: I!) {{ result: {mutation}(input: $input) {{ {selection} }} }}"
    return logger.ask(query, input=given)["result"]


def _alias(name: str, collection: str = "data") -> dict[str, str]:
    return {"alias": name, "artifactCollectionName": collection, "projectName": "birds",
            "entityName": "ada"}  # fmt: skip


def test_a_version_has_many_names(logger: Logger) -> None:
    first = logger.log({"a": b"1"}, aliases=[{"alias": "best"}])
    second = logger.log({"a": b"2"})
    for name in ("data", "data:latest", "data:v1", f"data:{second['digest']}"):
        assert (logger.find(name) or {})["id"] == second["id"]
    for name in ("data:best", "data:v0", f"data:{first['digest']}"):
        assert (logger.find(name) or {})["id"] == first["id"]
    for name in ("data:v2", "data:worst", "dat", "", ":", "data:v99999999999999999999"):
        assert logger.find(name) is None
    assert logger.find("data", entity="bob") is None
    assert logger.find("data", project="fish") is None


def test_it_is_found_as_a_member_of_its_collection(logger: Logger) -> None:
    logger.log({"a": b"1"}, aliases=[{"alias": "latest"}, {"alias": "best"}])
    query = f"""query ($name: String!) {{ {PROJECT} {{ artifactCollectionMembership(name: $name) {{
      __typename versionIndex aliases {{ alias }} artifactCollection {{ __typename name }}
      artifact {{ __typename versionIndex }} }} }} }}"""
    found = logger.ask(query, name="data:best")["project"]["artifactCollectionMembership"]
    assert found == {
        "__typename": "ArtifactCollectionMembership",
        "versionIndex": 0,
        "aliases": [{"alias": "best"}, {"alias": "latest"}, {"alias": "v0"}],
        "artifactCollection": {"__typename": "ArtifactSequence", "name": "data"},
        "artifact": {"__typename": "Artifact", "versionIndex": 0},
    }
    files = f"""{{ {PROJECT} {{ artifactCollection(name: "data") {{
      artifactMembership(aliasName: "v0") {{ files {{ edges {{ node {{ name }} }} }} }} }} }} }}"""
    membership = logger.ask(files)["project"]["artifactCollection"]["artifactMembership"]
    assert membership["files"]["edges"] == [{"node": {"name": "a"}}]


def test_types_and_collections_are_listed(logger: Logger) -> None:
    for name, kind in (("data", "dataset"), ("more", "dataset"), ("net", "model")):
        logger.log({"a": b"1"}, name, artifactTypeName=kind)
    query = f"""{{ {PROJECT} {{
      artifactTypes {{ edges {{ node {{ name }} }} pageInfo {{ hasNextPage }} }}
      artifactCollections(first: 2) {{ totalCount edges {{ node {{ name }} }}
        pageInfo {{ hasNextPage endCursor }} }}
      artifactType(name: "model") {{ artifactCollections {{ totalCount edges {{ node {{ name
        __typename }} }} }} artifactCollection(name: "data") {{ name }} }}
      nothing: artifactType(name: "nothing") {{ name }} }} }}"""
    found = logger.ask(query)["project"]
    assert [edge["node"]["name"] for edge in found["artifactTypes"]["edges"]] == [
        "dataset",
        "model",
    ]
    assert found["artifactCollections"]["totalCount"] == 3
    assert [e["node"]["name"] for e in found["artifactCollections"]["edges"]] == ["data", "more"]
    assert found["artifactCollections"]["pageInfo"]["hasNextPage"]
    assert found["artifactType"]["artifactCollections"] == {
        "totalCount": 1,
        "edges": [{"node": {"name": "net", "__typename": "ArtifactSequence"}}],
    }
    assert found["artifactType"]["artifactCollection"] is None
    assert found["nothing"] is None


def test_versions_page_by_page_the_newest_first(logger: Logger) -> None:
    for number in range(5):
        logger.log({"a": b"%d" % number})
    query = f"""query ($after: String, $order: String, $filters: JSONString) {{ {PROJECT} {{
      artifactType(name: "dataset") {{ artifactCollection(name: "data") {{
        artifacts(first: 2, after: $after, order: $order, filters: $filters) {{ totalCount
          edges {{ version }} pageInfo {{ hasNextPage endCursor }} }} }} }} }} }}"""

    def pages(**given: Any) -> list[str]:
        versions, after, more = list[str](), None, True
        while more:
            kind = logger.ask(query, after=after, **given)["project"]["artifactType"]
            page = kind["artifactCollection"]["artifacts"]
            versions += [edge["version"] for edge in page["edges"]]
            after, more = page["pageInfo"]["endCursor"], page["pageInfo"]["hasNextPage"]
        return versions

    assert pages(filters='{"state": "COMMITTED"}') == ["v4", "v3", "v2", "v1", "v0"]
    assert pages(order="+createdAt") == ["v0", "v1", "v2", "v3", "v4"]
    assert pages(filters='{"state": "PENDING"}') == []
    assert "cursor" in logger.refused(query, after="eHg=")
    assert "filters" in logger.refused(query, filters="{")


def test_lineage_both_ways(logger: Logger, upsert: Upsert) -> None:
    for run in ("maker", "user1", "user2"):
        upsert(name=run)
    version = logger.log({"a": b"1"}, runName="maker")
    for run in ("user1", "user2", "user1"):
        given = {"artifactID": version["id"], "projectName": "birds", "runName": run}
        _change(logger, "useArtifact", "artifact { id }", **given)
    found = logger.find("data")
    assert found is not None
    assert found["createdBy"] == {"name": "maker"}
    assert [edge["node"]["name"] for edge in found["usedBy"]["edges"]] == ["user1", "user2"]
    query = f"""query ($run: String!) {{ {PROJECT} {{ run(name: $run) {{
      inputArtifacts {{ totalCount edges {{ node {{ id }} }} pageInfo {{ hasNextPage }} }}
      outputArtifacts {{ totalCount edges {{ node {{ id }} }} }} }} }} }}"""
    one, none = [{"node": {"id": version["id"]}}], list[Any]()
    run = logger.ask(query, run="user1")["project"]["run"]
    assert (run["inputArtifacts"]["edges"], run["outputArtifacts"]["edges"]) == (one, none)
    run = logger.ask(query, run="maker")["project"]["run"]
    assert (run["inputArtifacts"]["edges"], run["outputArtifacts"]["edges"]) == (none, one)
    assert run["outputArtifacts"]["totalCount"] == 1


def test_texts_tags_and_aliases_change(logger: Logger) -> None:
    version = logger.log({"a": b"1"}, description="old", metadata='{"n": 1}')
    other = logger.log({"a": b"2"}, aliases=[{"alias": "best"}])
    made = _change(
        logger, "updateArtifact", "artifact { description metadata tags { name } }",
        artifactID=version["id"], description="new", tagsToAdd=[{"tagName": "x"}, {"tagName": "y"}],
    )  # fmt: skip
    assert made["artifact"] == {
        "description": "new", "metadata": '{"n": 1}', "tags": [{"name": "x"}, {"name": "y"}],
    }  # fmt: skip
    made = _change(
        logger, "updateArtifact", "artifact { description tags { name } ttlDurationSeconds }",
        artifactID=version["id"], tagsToDelete=[{"tagName": "x"}], ttlDurationSeconds=60,
    )  # fmt: skip
    assert made["artifact"] == {
        "description": "new", "tags": [{"name": "y"}], "ttlDurationSeconds": 60,
    }  # fmt: skip
    _change(logger, "addAliases", "success", artifactID=version["id"], aliases=[_alias("best")])
    assert logger.names("data:v0") == ["best", "latest", "v0"]
    assert logger.names("data:v1") == ["v1"]
    # Only its own are taken from it.
    _change(logger, "deleteAliases", "success", artifactID=other["id"], aliases=[_alias("best")])
    assert "best" in logger.names("data:v0")
    _change(logger, "deleteAliases", "success", artifactID=version["id"], aliases=[_alias("best")])
    assert logger.names("data:v0") == ["latest", "v0"]
    query = "mutation ($input: I!) { addAliases(input: $input) { success } }"
    given = {"artifactID": version["id"], "aliases": [_alias("x", "elsewhere")]}
    assert "is not in ada/birds/elsewhere" in logger.refused(query, input=given)


def test_a_link_is_a_member_of_another_collection(logger: Logger) -> None:
    version = logger.log({"a": b"1"})
    logger.log({"a": b"2"})
    given = {"artifactID": version["id"], "artifactPortfolioName": "chosen", "entityName": "ada",
             "projectName": "shelf", "aliases": [{"alias": "good"}]}  # fmt: skip
    for _ in range(2):  # Linked again, it stays where it is.
        linked = _change(
            logger, "linkArtifact",
            "versionIndex artifactMembership { artifactCollection { id __typename } }", **given,
        )  # fmt: skip
        assert linked["versionIndex"] == 0
    collection = linked["artifactMembership"]["artifactCollection"]
    assert collection["__typename"] == "ArtifactPortfolio"
    found = logger.find("chosen:good", project="shelf")
    assert found is not None
    assert found["id"] == version["id"]
    assert found["artifactSequence"]["name"] == "data"
    homes = {(a["alias"], a["artifactCollection"]["name"]) for a in found["aliases"]}
    assert homes == {("v0", "data"), ("good", "chosen"), ("latest", "chosen"), ("v0", "chosen")}
    given = {"artifactID": version["id"], "artifactPortfolioID": collection["id"]}
    assert _change(logger, "unlinkArtifact", "success", **given) == {"success": True}
    assert logger.find("chosen:good", project="shelf") is None
    assert logger.find("data:v0") is not None
    query = "mutation ($input: I!) { linkArtifact(input: $input) { versionIndex } }"
    own = {"artifactID": version["id"], "artifactPortfolioName": "data", "projectName": "birds"}
    assert "artifacts of its own" in logger.refused(query, input=own)


def test_an_aliased_version_is_not_deleted_by_mistake(logger: Logger) -> None:
    first, second = logger.log({"a": b"1"}), logger.log({"a": b"2"})
    delete = """mutation ($id: ID!, $aliases: Boolean) {
      deleteArtifact(input: {artifactID: $id, deleteAliases: $aliases}) { artifact { id } } }"""
    assert "aliases latest" in logger.refused(delete, id=second["id"])
    logger.ask(delete, id=second["id"], aliases=True)
    # The newest that is left is the latest, and numbers do not come again.
    assert logger.names("data") == ["latest", "v0"]
    assert logger.log({"a": b"2"})["versionIndex"] == 2
    logger.ask(delete, id=first["id"])
    assert logger.find("data:v0") is None
    assert "no such artifact" in logger.refused(delete, id=first["id"])


def test_a_collection_is_renamed_described_tagged_and_deleted(logger: Logger) -> None:
    logger.log({"a": b"1"})
    logger.log({"a": b"1"}, "other")
    query = f"""{{ {PROJECT} {{ artifactCollection(name: "data") {{ id }} }} }}"""
    key = logger.ask(query)["project"]["artifactCollection"]["id"]
    chosen = "artifactCollection { name description state defaultArtifactType { name } }"
    changed = _change(
        logger, "updateArtifactSequence", chosen,
        artifactSequenceID=key, name="renamed", description="of birds",
    )["artifactCollection"]  # fmt: skip
    assert (changed["name"], changed["description"]) == ("renamed", "of birds")
    changed = _change(
        logger, "moveArtifactSequence", chosen,
        artifactSequenceID=key, destinationArtifactTypeName="model",
    )["artifactCollection"]  # fmt: skip
    assert changed["defaultArtifactType"] == {"name": "model"}
    place = {"projectName": "birds", "artifactCollectionName": "renamed", "entityName": "ada"}
    tagged = _change(
        logger, "createArtifactCollectionTagAssignments", "tags { name }",
        **place, tags=[{"tagName": "x"}],
    )  # fmt: skip
    assert tagged == {"tags": [{"name": "x"}]}
    taken = "mutation ($input: I!) { updateArtifactSequence(input: $input) { __typename } }"
    assert "already" in logger.refused(taken, input={"artifactSequenceID": key, "name": "other"})
    _change(logger, "deleteArtifactSequence", chosen, artifactSequenceID=key)
    assert logger.find("renamed") is None
    assert logger.contents("other") == {"a": b"1"}


def test_a_runs_artifacts_for_whoever_sends_them_elsewhere(
    logger: Logger, upsert: Upsert, bob: Person
) -> None:
    upsert(name="maker")
    upsert(name="user")
    made = logger.log(
        {"a": b"hello"}, runName="maker", description="of birds", ttlDurationSeconds=60
    )
    logger.ask(
        'mutation($id: ID!) { useArtifact(input: {projectName: "birds", runName: "user", '
        "artifactID: $id}) { artifact { id } } }",
        id=made["id"],
    )
    logger.create("never committed", "x", runName="maker")
    client = logger.client
    told = client.get("/api/runs/1/artifacts").json()
    assert told["used"] == []
    (one,) = told["logged"]
    assert (one["collection"], one["version"], one["aliases"]) == ("data", 0, ["latest"])
    assert (one["made_by"], one["description"], one["ttl"]) == ("maker", "of birds", 60)
    assert [(run["id"], run["project"]) for run in one["used_by"]] == [("user", "birds")]
    assert client.get("/api/runs/2/artifacts").json() == {"logged": [], "used": [one]}
    assert client.get(f"/api/artifacts/{one['key']}").json() == one
    assert client.get(f"/api/artifacts/{one['key']}/manifest").json() == logger.manifest("data:v0")
    place = f"/api/artifacts/{one['key']}"
    for path in (place, f"{place}/manifest", "/api/runs/1/artifacts", f"/api/artifacts/{2**64}"):
        assert bob.get(path).status == 404
    assert client.get("/api/artifacts/2").status == 404  # In the making.
