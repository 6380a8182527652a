"""Users, teams and keys as W&B's public API asks for them."""

from __future__ import annotations

import json
from typing import Any

from tests.server.persons import Person, make_team

TEAM = """query GetTeamEntity($name: String!) {
  entity(name: $name) { id name available photoUrl readOnly readOnlyAdmin isTeam entityType
    privateOnly storageBytes codeSavingEnabled defaultAccess isPaid
    members { id admin pending email username name accountType apiKey } }
}"""
USERS = """query SearchUsers($query: String) {
  users(query: $query) { edges { node {
    username admin teams { edges { node { name } } } apiKeys { edges { node { id name } } } } } }
}"""
INVITE = """mutation CreateInvite($entity: String!, $username: String) {
  createInvite(input: {entityName: $entity, username: $username}) { invite { id name } }
}"""
DELETE_INVITE = """mutation DeleteInvite($id: String, $entity: String) {
  deleteInvite(input: {id: $id, entityName: $entity}) { success }
}"""
CREATE_TEAM = """mutation CreateTeam($name: String!, $admin: String) {
  createTeam(input: {teamName: $name, teamAdminUserName: $admin}) { entity { name available } }
}"""
DELETE_KEY = "mutation D($id: String!) { deleteApiKey(input: {id: $id}) { success } }"


def team(person: Person, name: str) -> Any:
    return person.ask(TEAM, name=name)["data"]["entity"]


def is_unknown(person: Person, name: str) -> bool:
    """Whether they are told of it just what they are told of a name that nobody has."""
    told = json.dumps(team(person, name)).replace(name, "nobody-has-it")
    return told == json.dumps(team(person, "nobody-has-it"))


def found(person: Person, query: str) -> list[dict[str, Any]]:
    edges = person.ask(USERS, query=query)["data"]["users"]["edges"]
    return [edge["node"] for edge in edges]


def keys_of(user: dict[str, Any]) -> list[dict[str, str]]:
    return [edge["node"] for edge in user["apiKeys"]["edges"]]


def test_ones_own_entity_has_a_member_and_no_empty_fields(bob: Person) -> None:
    own = team(bob, "bob")
    [member] = own.pop("members")
    assert (member["name"], member["accountType"], member["apiKey"]) == ("bob", "USER", None)
    assert own == {
        "id": "bob",
        "name": "bob",
        "available": False,
        "photoUrl": None,
        "readOnly": False,
        "readOnlyAdmin": False,
        "isTeam": False,
        "entityType": "user",
        "privateOnly": True,
        "storageBytes": 0,
        "codeSavingEnabled": True,
        "defaultAccess": "PRIVATE",
        "isPaid": False,
    }


def test_a_team_is_made_joined_and_left_through_the_client(
    ada: Person, bob: Person, eve: Person
) -> None:
    made = bob.ask(CREATE_TEAM, name="crew")["data"]["createTeam"]
    assert made == {"entity": {"name": "crew", "available": False}}
    assert "errors" in bob.ask(CREATE_TEAM, name="crew")
    assert is_unknown(eve, "crew")
    assert "no team" in eve.ask(INVITE, entity="crew", username="eve")["errors"][0]["message"]
    assert "errors" in ada.ask(INVITE, entity="crew", username="nobody")
    assert "errors" in bob.ask(INVITE, entity="crew")
    invited = bob.ask(INVITE, entity="crew", username="eve")["data"]["createInvite"]
    assert invited["invite"]["name"] == "eve"
    assert eve.put("/api/teams/crew/members/eve").status == 200
    crew = team(eve, "crew")
    assert (crew["isTeam"], crew["readOnly"], crew["readOnlyAdmin"]) == (True, False, False)
    assert [member["name"] for member in crew["members"]] == ["bob", "eve"]
    seen_by_admin = team(ada, "crew")
    assert (seen_by_admin["readOnly"], seen_by_admin["readOnlyAdmin"]) == (True, False)
    bobs = crew["members"][0]["id"]
    assert "errors" in bob.ask(DELETE_INVITE, id=bobs, entity="other")
    assert bob.ask(DELETE_INVITE, id=bobs, entity="crew")["data"]["deleteInvite"]["success"]
    assert "errors" in bob.ask(DELETE_INVITE, id=bobs, entity="crew")
    assert [member["name"] for member in team(eve, "crew")["members"]] == ["eve"]


def test_a_team_for_somebody_else_has_its_maker_too(bob: Person, eve: Person) -> None:
    assert "data" in bob.ask(CREATE_TEAM, name="crew", admin="eve")
    assert eve.put("/api/teams/crew/members/eve").status == 200
    assert {member["name"] for member in team(eve, "crew")["members"]} == {"bob", "eve"}


def test_what_an_entity_stores_is_counted(bob: Person, eve: Person) -> None:
    bob.log("r1")
    files = bob.ask(
        'mutation M { createRunFiles(input: {entityName: "bob", projectName: "birds", '
        'runName: "r1", files: ["notes.txt"]}) { files { uploadUrl } } }'
    )["data"]["createRunFiles"]["files"]
    assert bob.client.put(files[0]["uploadUrl"], b"12345").status == 200
    assert team(bob, "bob")["storageBytes"] == 5
    assert team(eve, "eve")["storageBytes"] == 0
    assert is_unknown(eve, "bob")


def test_a_free_name_is_free_and_one_with_runs_is_not(ada: Person) -> None:
    assert team(ada, "some-lab")["available"] is True
    ada.log("r1", "some-lab")
    assert team(ada, "some-lab")["available"] is False


def test_users_are_found_by_those_who_may_know_of_them(
    ada: Person, bob: Person, eve: Person
) -> None:
    ada.post("/api/users", {"name": "bobby"})
    assert [user["username"] for user in found(ada, "bob")] == ["bob", "bobby"]
    assert [user["username"] for user in found(bob, "")] == ["bob"]
    assert found(eve, "bob") == []
    make_team(bob, "crew", eve)
    [seen] = found(eve, "bob")
    assert [edge["node"]["name"] for edge in seen["teams"]["edges"]] == ["bob", "crew"]
    assert keys_of(seen) == []  # Nobody else's business.
    assert len(keys_of(found(bob, "bob")[0])) == 1


def test_keys_are_made_and_revoked_through_the_client(bob: Person, eve: Person) -> None:
    made = bob.ask(
        'mutation G { generateApiKey(input: {description: "laptop"}) '
        "{ apiKey { id name description } } }"
    )["data"]["generateApiKey"]["apiKey"]
    laptop = Person(bob.client, "bob", made["name"])
    assert laptop.get("/api/me").json()["name"] == "bob"
    assert made["description"] == "laptop"
    shown = keys_of(found(bob, "bob")[0])
    assert made["id"] in [key["id"] for key in shown]
    # As at W&B: by their first characters the client's user knows them again.
    names = {key["id"]: key["name"] for key in shown}
    assert len(names[made["id"]]) == 8
    assert made["name"].startswith(names[made["id"]])
    assert any(bob.key.startswith(name) for name in names.values())
    assert made["name"] not in str(shown)  # The key itself is told once.
    assert "no such key" in eve.ask(DELETE_KEY, id=made["id"])["errors"][0]["message"]
    assert "errors" in bob.ask(DELETE_KEY, id="made up")
    assert bob.ask(DELETE_KEY, id=made["id"])["data"]["deleteApiKey"]["success"]
    assert laptop.get("/api/me").status == 401
    assert "errors" in bob.ask(DELETE_KEY, id=made["id"])


def test_a_runs_user_is_who_made_it(bob: Person, eve: Person) -> None:
    make_team(bob, "crew", eve)
    eve.log("r1", "crew")
    asked = """{ project(name: "birds", entityName: "crew") {
      user { name } run(name: "r1") { user { username } } } }"""
    assert bob.ask(asked)["data"]["project"] == {
        "user": None,
        "run": {"user": {"username": "eve"}},
    }
    bob.log("r2")
    own = bob.ask('{ project(name: "birds") { user { username admin } } }')["data"]["project"]
    assert own == {"user": {"username": "bob", "admin": False}}
