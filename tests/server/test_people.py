"""Several people on one server: what is yours is yours, what is a team's is the team's."""

from __future__ import annotations

import pytest

from runyard.home import Home
from runyard.server.app import create_app
from runyard.server.people import permissions
from runyard.server.people.permissions import Caller, Entities
from runyard.server.tracker import Tracker
from tests.server.artifact_logger import Logger
from tests.server.asgi import KEY, Client
from tests.server.persons import Person, add_person, make_team

FOUND = """query Run($entity: String, $project: String!, $name: String!) {
  project(name: $project, entityName: $entity) { name run(name: $name) { id state } }
}"""
CREATE_FILES = """mutation CreateRunFiles($entity: String!, $project: String!, $run: String!) {
  createRunFiles(input: {entityName: $entity, projectName: $project, runName: $run,
    files: ["notes.txt"]}) { files { uploadUrl } }
}"""


def test_a_new_user_logs_under_their_own_name(bob: Person) -> None:
    made = bob.log("r1")["data"]["upsertBucket"]["bucket"]
    assert made["project"]["entity"]["name"] == "bob"
    viewer = bob.ask("{ viewer { entity username admin teams { edges { node { name } } } } }")
    assert viewer["data"]["viewer"] == {
        "entity": "bob",
        "username": "bob",
        "admin": False,
        "teams": {"edges": [{"node": {"name": "bob"}}]},
    }


def test_what_is_not_yours_looks_as_if_it_did_not_exist(bob: Person, eve: Person) -> None:
    bob.log("r1")
    key = bob.get("/api/run", name="r1").json()["key"]
    for entity, run in (("bob", "r1"), ("nobody", "r9")):
        answer = eve.ask(FOUND, entity=entity, project="birds", name=run)
        assert answer["data"]["project"] is None
        assert eve.get(f"/files/{entity}/birds/{run}/notes.txt").status == 404
        assert eve.stream(entity, run) == 403
        assert "errors" in eve.ask(CREATE_FILES, entity=entity, project="birds", run=run)
        assert "errors" in eve.log(run, entity)
    entity = 'entity(name: "%s") { available isTeam storageBytes readOnly members { name } }'
    of_bob, of_nobody = (eve.ask(f"{{ {entity % name} }}")["data"] for name in ("bob", "nobody"))
    assert of_bob == of_nobody
    assert of_bob["entity"]["members"] == []
    assert eve.get("/api/run", name="r1").status == 404
    assert eve.get(f"/api/runs/{key}/metrics").status == 404
    assert eve.get(f"/api/runs/{key}/console").status == 404
    assert eve.runs() == set()
    # Not even where the server's files are, nor on which machine it runs since when.
    assert eve.get("/api/health").json() == {"runs": 0, "running": 0}
    assert bob.runs() == {"r1"}


def test_a_run_of_somebody_elses_cannot_be_taken_over(bob: Person, eve: Person) -> None:
    opaque = bob.log("r1")["data"]["upsertBucket"]["bucket"]["id"]
    assert "errors" in eve.log("r1", id=opaque, displayName="mine")
    new = {"id": "planned", "project": "birds", "command": ["python"]}
    assert bob.post("/api/runs", new).status == 200
    eve.log("planned")
    assert bob.get("/api/run", name="planned").json()["entity"] == "bob"
    assert eve.post("/api/runs", {**new, "entity": "bob"}).status == 403


def test_team_members_read_and_write_together(ada: Person, bob: Person, eve: Person) -> None:
    make_team(bob, "crew", eve)
    bob.log("r1", "crew")
    assert eve.runs() == {"r1"}
    assert eve.stream("crew", "r1") == 200
    assert bob.delete("/api/teams/crew/members/eve").status == 200
    assert eve.runs() == set()
    assert eve.stream("crew", "r1") == 403
    assert eve.put("/api/teams/crew/members/eve").status == 404  # Nobody lets themselves in.
    assert eve.delete("/api/teams/crew").status == 404
    assert bob.put("/api/teams/crew/members/eve").status == 200
    assert eve.put("/api/teams/crew/members/eve").status == 200
    assert eve.stream("crew", "r1") == 200
    assert [team["members"] for team in ada.get("/api/teams").json()] == [["bob", "eve"]]


def test_the_admin_reads_everything_and_writes_into_nobodys(ada: Person, bob: Person) -> None:
    bob.log("r1")
    assert ada.runs() == {"r1"}
    assert ada.ask(FOUND, entity="bob", project="birds", name="r1")["data"]["project"]["run"]
    assert "errors" in ada.log("r1", "bob")
    assert ada.stream("bob", "r1") == 403
    key = ada.get("/api/run", name="r1").json()["key"]
    begun = {"token": "t", "host": "h", "pid": 1}
    assert ada.post(f"/api/runs/{key}/attempts", begun).status == 403


def test_who_is_alone_may_name_any_entity(ada: Person, bob: Person) -> None:
    assert "errors" not in ada.log("r1", "some-lab")
    assert "errors" in bob.log("r2", "some-lab")
    refused = ada.post("/api/users", {"name": "some-lab"})
    assert (refused.status, "has runs already" in refused.text) == (409, True)
    assert bob.post("/api/teams", {"name": "some-lab"}).status == 409
    assert ada.post("/api/teams", {"name": "some-lab", "members": ["bob"]}).status == 200
    assert bob.runs() == {"r1"}


def test_a_revoked_key_is_refused_at_once(bob: Person) -> None:
    made = bob.post("/api/keys", {"label": "laptop"}).json()
    laptop = Person(bob.client, "bob", made["key"])
    laptop.log("r1")
    assert laptop.stream("bob", "r1") == 200
    assert bob.delete(f"/api/users/bob/keys/{made['id']}").status == 200
    assert laptop.stream("bob", "r1") == 401
    assert laptop.get("/api/runs").status == 401
    assert bob.get("/api/runs").status == 200
    assert bob.delete(f"/api/users/bob/keys/{made['id']}").status == 404


def test_keys_are_listed_without_being_told(ada: Person, bob: Person, home: Home) -> None:
    bob.post("/api/keys", {"label": "laptop"})
    listed = bob.get("/api/keys")
    assert [(key["user"], key["label"]) for key in listed.json()] == [
        ("bob", "first"),
        ("bob", "laptop"),
    ]
    first, laptop = listed.json()
    assert first["used_at"] >= first["created_at"]
    assert laptop["used_at"] is None
    assert len(ada.get("/api/keys").json()) == 3
    assert bob.key not in listed.text
    assert not any(
        bob.key.encode() in path.read_bytes() for path in home.path.rglob("*") if path.is_file()
    )


def test_a_removed_user_is_out_and_finds_the_runs_when_back(ada: Person, bob: Person) -> None:
    bob.log("r1")
    ada.post("/api/teams", {"name": "crew", "members": ["bob"]})
    assert ada.delete("/api/users/bob").status == 200
    assert bob.get("/api/runs").status == 401
    assert ada.runs() == {"r1"}
    assert "errors" in ada.log("r2", "bob")  # The name stays bob's.
    back = add_person(ada, "bob")
    assert back.runs() == {"r1"}
    assert back.get("/api/me").json() == {
        "name": "bob",
        "admin": False,
        "teams": [],
        "invitations": [],
    }


def test_only_the_admin_makes_and_removes_users(ada: Person, bob: Person, eve: Person) -> None:
    assert bob.post("/api/users", {"name": "mallory"}).status == 403
    assert bob.delete("/api/users/eve").status == 403
    assert bob.post("/api/server/stop", {}).status == 403
    assert bob.post("/api/keys", {"user": "eve"}).status == 404
    assert [user["name"] for user in bob.get("/api/users").json()] == ["bob"]
    assert [user["name"] for user in ada.get("/api/users").json()] == ["ada", "bob", "eve"]


@pytest.mark.parametrize("name", ["", "a/b", "api", " bob", "..", "x" * 200, "line\nfeed"])
def test_names_that_cannot_be(ada: Person, name: str) -> None:
    assert ada.post("/api/users", {"name": name}).status == 400
    assert ada.post("/api/teams", {"name": name}).status == 400


def test_names_are_taken_once(ada: Person, bob: Person) -> None:
    ada.post("/api/teams", {"name": "crew"})
    assert ada.post("/api/users", {"name": "bob"}).status == 409
    assert ada.post("/api/users", {"name": "crew"}).status == 409
    assert ada.post("/api/teams", {"name": "bob"}).status == 409
    assert ada.post("/api/teams", {"name": "gang", "members": ["nobody"]}).status == 404
    assert ada.get("/api/teams").json()[0]["name"] == "crew"  # And no half-made gang.


def test_the_owner_and_the_folders_own_key_stay(ada: Person) -> None:
    own = ada.get("/api/keys").json()[0]
    assert own["label"] == "state folder"
    assert ada.delete(f"/api/users/ada/keys/{own['id']}").status == 409
    assert ada.delete("/api/users/ada").status == 409
    assert ada.get("/api/me").json()["admin"] is True


def test_addresses_that_a_key_asked_for_go_with_it(ada: Person, bob: Person) -> None:
    """Uploads and downloads carry no key: their addresses end with the key that asked for them."""
    bob.log("r1")
    laptop = Person(bob.client, "bob", bob.post("/api/keys", {"label": "laptop"}).json()["key"])
    created = laptop.ask(CREATE_FILES, entity="bob", project="birds", run="r1")["data"]
    upload = created["createRunFiles"]["files"][0]["uploadUrl"]
    assert bob.client.put(upload, b"first").status == 200
    logger = Logger(bob.client, key=laptop.key)
    artifact = logger.log({"a": b"hello"})
    manifest = artifact["currentManifest"]["file"]["directUrl"]
    content = artifact["files"]["edges"][0]["node"]["directUrl"]
    to_come = logger.announce(logger.create("next", "d2")["id"], {"b": b"more"})[0]["uploadUrl"]
    assert [logger.download(url).status for url in (manifest, content)] == [200, 200]

    key = bob.get("/api/keys").json()[-1]
    assert key["label"] == "laptop"
    assert bob.delete(f"/api/users/bob/keys/{key['id']}").status == 200
    for late in (upload, to_come):
        refused = bob.client.put(late, b"more")
        assert (refused.status, "revoked" in refused.text) == (403, True)
    assert [logger.download(url).status for url in (manifest, content)] == [403, 403]
    assert bob.get("/files/bob/birds/r1/notes.txt").text == "first"
    assert Logger(bob.client, key=bob.key).contents("data:latest") == {"a": b"hello"}


def test_who_leaves_a_team_uploads_nothing_more_to_it(bob: Person, eve: Person) -> None:
    make_team(bob, "crew", eve)
    eve.log("r1", "crew")
    created = eve.ask(CREATE_FILES, entity="crew", project="birds", run="r1")["data"]
    upload = created["createRunFiles"]["files"][0]["uploadUrl"]
    logger = Logger(eve.client, key=eve.key)
    version = logger.create("eggs", "d1", entityName="crew")["id"]
    content = logger.announce(version, {"a": b"hello"})[0]["uploadUrl"]
    bob.delete("/api/teams/crew/members/eve")
    assert [eve.client.put(url, b"hello").status for url in (upload, content)] == [404, 403]


def test_who_only_reads_gets_no_address_to_upload_to(ada: Person, bob: Person) -> None:
    bob.log("r1")
    created = bob.ask(CREATE_FILES, entity="bob", project="birds", run="r1")["data"]
    bob.client.put(created["createRunFiles"]["files"][0]["uploadUrl"], b"bob's")
    asked = """{ project(name: "birds", entityName: "bob") { run(name: "r1") {
      files { edges { node { url(upload: true) } } } } } }"""
    assert "uploads/" in str(bob.ask(asked)["data"])
    refused = ada.ask(asked)
    assert "may not change" in refused["errors"][0]["message"]
    assert "uploads/" not in str(refused)


def test_people_are_known_after_a_restart(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    client, tracker = start(home)
    ada = Person(client, "ada", KEY)
    bob, eve = add_person(ada, "bob"), add_person(ada, "eve")
    make_team(bob, "crew", eve)
    bob.log("r1", "crew")
    ada.delete("/api/users/bob")
    client.close()
    tracker.close()
    # Started by way of `su`, say: the folder is ada's all the same.
    monkeypatch.setenv("LOGNAME", "root")
    client, tracker = start(home)
    try:
        assert Person(client, "ada", KEY).get("/api/me").json()["name"] == "ada"
        assert Person(client, "bob", bob.key).get("/api/me").status == 401
        back = Person(client, "eve", eve.key)
        assert back.runs() == {"r1"}
        assert back.get("/api/keys").json()[0]["used_at"] is not None
    finally:
        client.close()
        tracker.close()


def start(home: Home) -> tuple[Client, Tracker]:
    tracker = Tracker(home)
    tracker.open(KEY)
    return Client(create_app(tracker, stop=lambda: None)), tracker


def test_the_rules_by_themselves() -> None:
    bob = Caller(2, "bob", teams=frozenset({"crew"}))
    admin = Caller(1, "ada", admin=True)
    owned = {"ada", "bob", "eve", "crew", "gang"}
    assert permissions.readable(bob) == Entities(frozenset({"bob", "crew"}))
    assert permissions.readable(admin) is None
    writes = {
        who.name: {
            entity for entity in (*owned, "free") if permissions.may_write(who, entity, owned)
        }
        for who in (bob, admin)
    }
    assert writes == {"bob": {"bob", "crew"}, "ada": {"ada", "free"}}


def test_sweeps_and_agents_are_as_private_as_runs(bob: Person, eve: Person) -> None:
    config = "{method: grid, program: t.py, parameters: {lr: {values: [1, 2]}}}"
    make = """mutation($id: ID, $config: String, $entity: String, $state: String) {
      upsertSweep(input: {id: $id, config: $config, entityName: $entity, projectName: "birds",
        state: $state}) { sweep { id name } } }"""
    come = """mutation($sweep: String!, $entity: String) { createAgent(input: {host: "n",
      projectName: "birds", entityName: $entity, sweep: $sweep}) { agent { id } } }"""
    beat = """mutation($id: ID!, $runs: JSONString) { agentHeartbeat(input: {id: $id,
      runState: $runs}) { commands } }"""
    find = """query($sweep: String!) { project(name: "birds", entityName: "bob") {
      sweep(sweepName: $sweep) { name } } }"""
    sweep = bob.ask(make, config=config)["data"]["upsertSweep"]["sweep"]
    agent = bob.ask(come, sweep=sweep["name"])["data"]["createAgent"]["agent"]["id"]
    assert "errors" in eve.ask(make, config=config, entity="bob")
    assert "errors" in eve.ask(make, id=sweep["id"], state="CANCELED")
    refused = eve.ask(come, sweep=sweep["name"], entity="bob")["errors"][0]["message"]
    nobody = eve.ask(come, sweep="nowhere0", entity="bob")["errors"][0]["message"]
    assert refused.replace(sweep["name"], "nowhere0") == nobody
    assert eve.ask(find, sweep=sweep["name"])["data"]["project"] is None
    # As one who has no agent: sent home, and nothing is heard of it.
    sent_home = eve.ask(beat, id=agent, runs="{}")["data"]["agentHeartbeat"]["commands"]
    assert sent_home == '[{"type": "exit"}]'
    given = bob.ask(beat, id=agent, runs="{}")["data"]["agentHeartbeat"]["commands"]
    assert '"lr": {"value": 1}' in given
