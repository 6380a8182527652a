"""Nobody is put into a team unasked, and asking people in tells nothing about who there is."""

from __future__ import annotations

import pytest

from runyard.server.people import invitations
from tests.server.asgi import Answer
from tests.server.persons import Person, add_person, make_team
from tests.server.test_accounts import CREATE_TEAM, DELETE_INVITE, INVITE, is_unknown, team

NOBODY = "nobody"
DOCUMENTS = {
    "entity": '{ entity(name: "NAME") { name available isTeam members { name } } }',
    "users": '{ users(query: "NAME") { edges { node { username } } } }',
    "models": '{ models(entityName: "NAME") { edges { node { name } } } }',
    "project": '{ project(name: "birds", entityName: "NAME") { name } }',
    "invite": 'mutation I { createInvite(input: {entityName: "crew", username: "NAME"}) '
    "{ invite { name toUser { name } } } }",
    "log": 'mutation U { upsertBucket(input: {name: "r1", modelName: "birds", entityName: "NAME"}) '
    "{ bucket { name } } }",
}


def members(person: Person, name: str = "crew") -> list[str]:
    (crew,) = [each for each in person.get("/api/teams").json() if each["name"] == name]
    found: list[str] = crew["members"]
    return found


def invited_to(person: Person) -> list[tuple[str, str]]:
    found = person.get("/api/me").json()["invitations"]
    return [(invitation["team"], invitation["invited_by"]) for invitation in found]


def said(answer: Answer, name: str) -> tuple[int, str]:
    """An answer without the name that was asked for."""
    return answer.status, answer.text.replace(name, "NAME")


@pytest.fixture
def crew(bob: Person, eve: Person) -> Person:
    """Bob, whose team has nobody else in it."""
    assert bob.post("/api/teams", {"name": "crew", "members": ["eve"]}).status == 200
    return bob


def test_who_is_named_is_asked_and_not_put_into_the_team(crew: Person, eve: Person) -> None:
    crew.log("r1", "crew")
    assert members(crew) == ["bob"]
    assert crew.get("/api/teams").json()[0]["invited"] == ["eve"]
    assert (eve.runs(), eve.stream("crew", "r1")) == (set(), 403)
    assert eve.get("/api/me").json()["teams"] == []
    assert invited_to(eve) == [("crew", "bob")]
    # Until they accept, the two know no more of each other.
    assert [user["name"] for user in crew.get("/api/users").json()] == ["bob"]
    assert eve.put("/api/teams/crew/members/eve").status == 200
    assert eve.runs() == {"r1"}
    assert members(eve) == ["bob", "eve"]
    assert (invited_to(eve), crew.get("/api/teams").json()[0]["invited"]) == ([], [])


def test_an_invitation_is_declined_or_taken_back(crew: Person, eve: Person) -> None:
    assert eve.delete("/api/teams/crew/members/eve").status == 200
    assert eve.put("/api/teams/crew/members/eve").status == 404
    assert crew.put("/api/teams/crew/members/eve").status == 200
    assert crew.delete("/api/teams/crew/members/eve").status == 200
    assert invited_to(eve) == []
    assert eve.put("/api/teams/crew/members/eve").status == 404
    assert members(crew) == ["bob"]


def test_an_invitation_is_for_the_invited_alone(ada: Person, crew: Person, eve: Person) -> None:
    mallory = add_person(ada, "mallory")
    assert mallory.put("/api/teams/crew/members/eve").status == 404
    assert mallory.put("/api/teams/crew/members/mallory").status == 404
    assert mallory.delete("/api/teams/crew/members/eve").status == 404
    # Who is invited is no member yet, and cannot ask others in.
    assert eve.put("/api/teams/crew/members/mallory").status == 404
    assert members(crew) == ["bob"]


def test_who_leaves_takes_their_invitations_along(ada: Person, crew: Person, eve: Person) -> None:
    mallory = add_person(ada, "mallory")
    eve.put("/api/teams/crew/members/eve")
    assert eve.put("/api/teams/crew/members/mallory").status == 200
    assert invited_to(mallory) == [("crew", "eve")]
    assert crew.delete("/api/teams/crew/members/eve").status == 200
    assert invited_to(mallory) == []
    assert mallory.put("/api/teams/crew/members/mallory").status == 404


def test_a_removed_user_is_not_invited_any_more(ada: Person, crew: Person, eve: Person) -> None:
    assert ada.delete("/api/users/eve").status == 200
    assert invited_to(add_person(ada, "eve")) == []


def test_the_admin_puts_people_into_teams_without_asking(
    ada: Person, crew: Person, eve: Person
) -> None:
    assert ada.put("/api/teams/crew/members/eve").status == 200
    assert members(eve) == ["bob", "eve"]
    assert invited_to(eve) == []
    # Who may see everybody is told of a slip.
    assert ada.put(f"/api/teams/crew/members/{NOBODY}").status == 404


def test_open_invitations_have_a_limit(crew: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invitations, "_MOST", 2)
    assert crew.put("/api/teams/crew/members/one").status == 200
    assert crew.put("/api/teams/crew/members/two").status == 409
    assert crew.delete("/api/teams/crew/members/one").status == 200
    assert crew.put("/api/teams/crew/members/two").status == 200
    assert crew.put("/api/teams/crew/members/api").status == 400  # Nobody can have that name.


def test_the_public_api_invites_likewise(crew: Person, eve: Person) -> None:
    pending = [(each["name"], each["pending"]) for each in team(crew, "crew")["members"]]
    assert pending == [("bob", False), ("eve", True)]
    assert is_unknown(eve, "crew")
    crew.delete("/api/teams/crew/members/eve")
    made = crew.ask(INVITE, entity="crew", username="eve")["data"]["createInvite"]["invite"]
    assert invited_to(eve) == [("crew", "bob")]
    assert crew.ask(DELETE_INVITE, id=made["id"], entity="crew")["data"]["deleteInvite"]["success"]
    assert invited_to(eve) == []
    crew.ask(CREATE_TEAM, name="gang", admin="eve")
    assert (is_unknown(eve, "gang"), invited_to(eve)) == (True, [("gang", "bob")])


@pytest.mark.parametrize("name", ["eve", "gang", "past", "some-lab", NOBODY])
def test_no_answer_tells_whether_a_name_is_anybodys(
    ada: Person, crew: Person, eve: Person, name: str
) -> None:
    """`eve` is a user, `past` was one, `gang` is a team, `some-lab` has runs: all unseen by bob."""
    eve.post("/api/teams", {"name": "gang"})
    add_person(ada, "past")
    ada.delete("/api/users/past")
    ada.log("r1", "some-lab")
    crew.delete("/api/teams/crew/members/eve")

    def answers(name: str) -> dict[str, tuple[int, str]]:
        new = {"id": "r7", "project": "birds", "command": ["python"], "entity": name}
        told = {
            "invite": crew.put(f"/api/teams/crew/members/{name}"),
            "again": crew.put(f"/api/teams/crew/members/{name}"),
            "take back": crew.delete(f"/api/teams/crew/members/{name}"),
            "let go": crew.delete(f"/api/teams/crew/members/{name}"),
            "join": crew.put(f"/api/teams/{name}/members/bob"),
            "leave": crew.delete(f"/api/teams/{name}/members/bob"),
            "put in": crew.put(f"/api/teams/{name}/members/{name}"),
            "give up": crew.delete(f"/api/teams/{name}"),
            "add user": crew.post("/api/users", {"name": name}),
            "remove user": crew.delete(f"/api/users/{name}"),
            "key for": crew.post("/api/keys", {"user": name}),
            "revoke": crew.delete(f"/api/users/{name}/keys/0123456789ab"),
            "team with": crew.post("/api/teams", {"name": "pack", "members": [name]}),
            "runs": crew.get("/api/runs", entity=name),
            "run": crew.post("/api/runs", new),
            "project": crew.get(f"/api/projects/{name}/birds"),
            "live": crew.get("/api/live", project=f"{name}/birds"),
            "file": crew.get(f"/files/{name}/birds/r1/notes.txt"),
            "stream": crew.post(f"/files/{name}/birds/r1/file_stream", {"files": {}}),
            "sweeps": crew.get("/api/sweeps", entity=name),
        }
        crew.delete("/api/teams/pack")
        graphql = {
            f"graphql {what}": crew.post("/graphql", {"query": document.replace("NAME", name)})
            for what, document in DOCUMENTS.items()
        }
        crew.delete(f"/api/teams/crew/members/{name}")
        return {what: said(answer, name) for what, answer in [*told.items(), *graphql.items()]}

    assert answers(name) == answers("no-such-name")


@pytest.mark.parametrize("name", ["eve", "gang", "past", "some-lab"])
def test_a_taken_name_says_no_more_than_that(
    ada: Person, bob: Person, eve: Person, name: str
) -> None:
    """Names are unique, so making a team of that name fails; by whom it is had is not told."""
    eve.post("/api/teams", {"name": "gang"})
    add_person(ada, "past")
    ada.delete("/api/users/past")
    ada.log("r1", "some-lab")
    refused = bob.post("/api/teams", {"name": name})
    assert said(refused, name) == (409, '{"error":"the name \'NAME\' is taken"}')
    (error,) = bob.ask(CREATE_TEAM, name=name)["errors"]
    assert error["message"] == f"the name {name!r} is taken"


def test_a_whole_team_is_made(bob: Person, eve: Person) -> None:
    make_team(bob, "crew", eve)
    assert members(eve) == ["bob", "eve"]
