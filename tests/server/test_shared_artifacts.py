"""A version that is linked to a team's collection is lent: it alone, and as long as it is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from runyard.server import wandb_api
from tests.server.artifact_logger import Logger
from tests.server.asgi import Client
from tests.server.persons import Person, make_team

LINK = "mutation ($input: I!) { linkArtifact(input: $input) { versionIndex } }"
ADD_ALIASES = "mutation ($input: I!) { addAliases(input: $input) { success } }"
THROUGH_TEAM = """query { project(name: "shelf", entityName: "lab") { artifact(name: "shared:v0") {
  id versionIndex artifactSequence { latestArtifact { id files { edges { node { directUrl } } } } }
  artifactMemberships { edges { node { artifactCollection { name } } } }
  aliases { alias artifactCollection { name } }
  files { edges { node { name directUrl } } } currentManifest { file { directUrl } } } } }"""
BY_ID = "query ($id: ID!) { artifact(id: $id) { id size } }"


@pytest.fixture
def lab(bob: Person, eve: Person) -> str:
    """A team of bob and eve."""
    make_team(bob, "lab", eve)
    return "lab"


@pytest.fixture
def versions(client: Client, bob: Person, lab: str) -> list[dict[str, Any]]:
    """Two versions of bob's; the first is linked to the team's collection, and to one of bob's."""
    logger = Logger(client, key=bob.key)
    made = [logger.log({"a": b"lent"}), logger.log({"a": b"private"})]
    for entity, portfolio in ((lab, "shared"), ("bob", "mine")):
        given = {"artifactID": made[0]["id"], "artifactPortfolioName": portfolio,
                 "entityName": entity, "projectName": "shelf"}  # fmt: skip
        logger.ask(LINK, input=given)
    return made


def shared(person: Person) -> dict[str, Any] | None:
    project = person.ask(THROUGH_TEAM)["data"]["project"]
    found: dict[str, Any] | None = None if project is None else project["artifact"]
    return found


def test_a_lent_version_leads_to_no_other(
    eve: Person, bob: Person, versions: list[dict[str, Any]]
) -> None:
    lent = shared(eve)
    assert lent is not None
    assert lent["id"] == versions[0]["id"]
    assert lent["artifactSequence"]["latestArtifact"] is None
    places = [edge["node"]["artifactCollection"]["name"]
              for edge in lent["artifactMemberships"]["edges"]]  # fmt: skip
    assert places == ["shared"]
    assert {alias["artifactCollection"]["name"] for alias in lent["aliases"]} == {"shared"}
    assert eve.ask(BY_ID, id=versions[0]["id"])["data"]["artifact"] is not None
    assert eve.ask(BY_ID, id=versions[1]["id"])["data"]["artifact"] is None
    own = shared(bob)
    assert own is not None
    assert own["artifactSequence"]["latestArtifact"]["id"] == versions[1]["id"]


@pytest.mark.usefixtures("versions")
def test_addresses_of_a_lent_version_end_with_the_membership(eve: Person, client: Client) -> None:
    lent = shared(eve)
    assert lent is not None
    urls = [lent["files"]["edges"][0]["node"]["directUrl"],
            lent["currentManifest"]["file"]["directUrl"]]  # fmt: skip
    reader = Logger(client, key=eve.key)
    assert reader.download(urls[0]).body == b"lent"
    assert reader.download(urls[1]).status == 200
    assert eve.delete("/api/teams/lab/members/eve").status == 200
    assert shared(eve) is None
    assert [reader.download(url).status for url in urls] == [404, 404]


def test_what_was_lent_cannot_be_lent_on(eve: Person, versions: list[dict[str, Any]]) -> None:
    given = {"artifactID": versions[0]["id"], "artifactPortfolioName": "kept",
             "entityName": "eve", "projectName": "shelf"}  # fmt: skip
    assert "no such artifact" in eve.ask(LINK, input=given)["errors"][0]["message"]


def test_a_link_lends_as_long_as_whoever_made_it_has_the_version(
    client: Client, bob: Person, eve: Person, lab: str
) -> None:
    """Eve links a version of the team's to a portfolio of her own, and leaves the team."""
    logger = Logger(client, key=bob.key)
    new = {"entityName": lab, "projectName": "birds", "artifactTypeName": "dataset",
           "artifactCollectionName": "data", "digest": "d1"}  # fmt: skip
    version = logger.create(**new)["id"]
    assert logger.send_manifest(version, {"version": 1, "contents": {}}).status == 200
    logger.commit(version)
    given = {"artifactID": version, "artifactPortfolioName": "kept", "entityName": "eve",
             "projectName": "shelf"}  # fmt: skip
    assert "errors" not in eve.ask(LINK, input=given)
    assert eve.ask(BY_ID, id=version)["data"]["artifact"] is not None
    assert eve.delete(f"/api/teams/{lab}/members/eve").status == 200
    assert eve.ask(BY_ID, id=version)["data"]["artifact"] is None


def test_the_admin_lends_nobodys_versions(
    client: Client, ada: Person, eve: Person, bob: Person
) -> None:
    """The admin reads everything: that does not make it the admin's to show to others."""
    version = Logger(client, key=bob.key).log({"a": b"private"})["id"]
    make_team(ada, "club", eve)
    given = {"artifactID": version, "artifactPortfolioName": "shown", "entityName": "club",
             "projectName": "shelf"}  # fmt: skip
    ada.ask(LINK, input=given)
    assert eve.ask(BY_ID, id=version)["data"]["artifact"] is None


def test_names_in_a_private_collection_are_its_owners(
    eve: Person, client: Client, bob: Person, lab: str
) -> None:
    """A version of the team's, which bob has linked to a collection of his own."""
    logger = Logger(client, key=bob.key)
    version = logger.ask(
        "mutation ($input: I!) { createArtifact(input: $input) { artifact { id } } }",
        input={"entityName": lab, "projectName": "birds", "artifactTypeName": "dataset",
               "artifactCollectionName": "data", "digest": "d1"},
    )["createArtifact"]["artifact"]["id"]  # fmt: skip
    assert logger.send_manifest(version, {"version": 1, "contents": {}}).status == 200
    logger.commit(version)
    given = {"artifactID": version, "artifactPortfolioName": "mine", "entityName": "bob",
             "projectName": "shelf"}  # fmt: skip
    logger.ask(LINK, input=given)
    alias = {"artifactCollectionName": "mine", "entityName": "bob", "projectName": "shelf",
             "alias": "best"}  # fmt: skip
    refused = eve.ask(ADD_ALIASES, input={"artifactID": version, "aliases": [alias]})
    assert "may not change what belongs to 'bob'" in refused["errors"][0]["message"]
    given = {"artifactID": version, "aliases": [alias]}
    assert bob.ask(ADD_ALIASES, input=given)["data"]["addAliases"]["success"] is True


def test_an_id_that_a_client_made_is_looked_up_by_its_own_people(
    client: Client, bob: Person, eve: Person
) -> None:
    logger = Logger(client, key=bob.key)
    logger.create(clientID="client-made")
    query = 'query { clientIDMapping(clientID: "client-made") { serverID } }'
    assert bob.ask(query)["data"]["clientIDMapping"]["serverID"]
    assert eve.ask(query)["data"]["clientIDMapping"] is None


def test_no_field_loads_a_run_a_collection_or_a_version_past_its_reader() -> None:
    """Every GraphQL field loads through `artifacts.visibility`, which knows who asks."""
    folder = Path(wandb_api.__file__).parent
    loads = re.compile(r"read\((?:runs|artifacts|collections)\.(?:by_key|latest)\b")
    places = {path.name for path in folder.glob("*/*.py") if loads.search(path.read_text())}
    # It looks for a run in order to refuse it.
    assert places == {"run_fields.py"}
