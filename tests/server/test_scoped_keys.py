"""Keys for what programs run in: what they open, when they end, and why they are refused."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from runyard.home import Home
from runyard.server.app import create_app
from runyard.server.http import scopes
from runyard.server.http.routes import Endpoint
from runyard.server.people import api_keys
from runyard.server.people.permissions import ALL, RUNS, Caller
from runyard.server.tracker import Tracker
from runyard.server.wandb_api.fields import refusals, root_fields
from runyard.server.wandb_api.graphql.request import Request as Question
from tests.server.asgi import KEY
from tests.server.persons import Person, add_person
from tests.server.test_auth_middleware import OPEN

MAKE_SWEEP = """mutation($id: ID, $config: String, $entity: String, $controller: JSONString) {
  upsertSweep(input: {id: $id, config: $config, entityName: $entity, projectName: "birds",
    controller: $controller}) { sweep { id name } } }"""


def _handed(person: Person, kind: str = "shell", **more: object) -> Person:
    """The same person, with a key as programs have it."""
    made = person.post("/api/keys", {"kind": kind, "label": f"{kind} on node1", **more})
    assert made.status == 200, made.text
    return Person(person.client, person.name, made.json()["key"])


@pytest.fixture
def shell(ada: Person) -> Person:
    return _handed(ada)


def _keys(person: Person) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = person.get("/api/keys").json()
    return found


def _endpoints(tracker: Tracker) -> list[Endpoint]:
    """Those that need a key."""
    routes = create_app(tracker, stop=lambda: None).routes
    endpoints = [route for route in routes if isinstance(route, Endpoint)]
    assert len(endpoints) == len(routes)
    return [endpoint for endpoint in endpoints if endpoint.path not in OPEN]


def test_every_mutation_is_classified_once(tracker: Tracker) -> None:
    request = Question(tracker, Caller(1, "ada", admin=True), "http://here")
    known = root_fields.roots(request)["mutation"]("").keys() - {"__typename"}
    known -= refusals.MUTATIONS.keys()
    assert known == scopes.RUNS_MUTATIONS | scopes.WHOLE_MUTATIONS
    assert not scopes.RUNS_MUTATIONS & scopes.WHOLE_MUTATIONS


def test_the_walk_over_all_routes(tracker: Tracker, ada: Person, shell: Person) -> None:
    """What is not for runs is refused before anything is read; the rest answers as it would."""
    numbers = {"{key:int}": "1", "{number:int}": "1", "{agent:int}": "1"}
    for endpoint in _endpoints(tracker):
        path = endpoint.path
        for part, value in numbers.items():
            path = path.replace(part, value)
        path = path.replace(":path}", "}").replace("{", "").replace("}", "")
        for method in (endpoint.methods or set()) - {"HEAD"}:
            status = shell.client.request(method, path, [b"{}"], key=shell.key).status
            assert (status == 403) is (endpoint.scope == ALL), (method, path, status)
            assert status not in (401, 500), (method, path)
    assert tracker.accounts.caller(KEY) is not None  # Nothing of the folder's own was touched.
    assert len(_keys(ada)) == 2


def test_what_is_open_without_a_key_is_open_with_one(tracker: Tracker, shell: Person) -> None:
    """Some clients send their key with signed addresses too."""
    for route in create_app(tracker, stop=lambda: None).routes:
        assert isinstance(route, Route)
        if route.path in OPEN:
            path = route.path.replace(":path}", "}").replace("{", "").replace("}", "")
            (method, *_) = (route.methods or set()) - {"HEAD"}
            assert scopes.REFUSAL not in shell.client.request(method, path, key=shell.key).text


def test_a_new_route_is_closed_until_it_is_declared_open() -> None:
    async def tell(_request: Request) -> Response:
        return Response("news")

    async def ask(app: Any, caller: Caller) -> int:
        statuses = []

        async def send(message: Any) -> None:
            statuses.append(message.get("status"))

        scope = {"type": "http", "method": "GET", "path": "/api/news", "headers": []}
        await app({**scope, "caller": caller}, None, send)
        return int(statuses[0])

    closed = Endpoint("GET", "/api/news", tell)
    assert asyncio.run(ask(closed.app, Caller(1, "ada", scope=RUNS))) == 403
    assert asyncio.run(ask(closed.app, Caller(1, "ada"))) == 200
    opened = Endpoint("GET", "/api/news", tell, RUNS)
    assert asyncio.run(ask(opened.app, Caller(1, "ada", scope=RUNS))) == 200


def test_a_new_mutation_is_closed_until_it_is_classified(
    shell: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = '{ deleteRun(input: {id: "x"}) { success } }'
    assert "errors" in shell.ask(f"mutation {name}")
    monkeypatch.setattr(root_fields, "RUNS_MUTATIONS", frozenset())
    refused = shell.ask(f"mutation {name}")
    assert refused["errors"][0]["message"] == scopes.REFUSAL


def test_no_key_of_a_shell_makes_or_ends_keys(ada: Person, shell: Person) -> None:
    made = shell.ask(
        'mutation { generateApiKey(input: {description: "mine"}) { apiKey { name } } }'
    )
    assert made["errors"][0]["message"] == scopes.REFUSAL
    keys = "{ viewer { username admin apiKeys { edges { node { id } } } } }"
    seen = shell.ask(keys)["data"]["viewer"]
    assert seen == {"username": "ada", "admin": False, "apiKeys": {"edges": []}}
    own = ada.ask(keys)["data"]["viewer"]["apiKeys"]["edges"][0]["node"]["id"]
    ended = shell.ask("mutation($id: ID!) { deleteApiKey(input: {id: $id}) { success } }", id=own)
    assert ended["errors"][0]["message"] == scopes.REFUSAL
    assert len(_keys(ada)) == 2


def test_it_logs_and_reads_its_owners_runs_and_no_other(
    ada: Person, bob: Person, shell: Person
) -> None:
    bob.log("r1")
    ada.log("r2")
    shell.log("r3")
    assert ada.runs() == {"r1", "r2", "r3"}  # To the admin nothing is hidden,
    assert shell.runs() == {"r2", "r3"}  # to a program of theirs what is others' is.
    assert shell.stream("bob", "r1") == 403
    assert shell.get("/api/run", name="r1").status == 404
    assert shell.get("/api/health").json()["runs"] == 2


def test_a_program_may_still_name_an_entity_that_nobody_owns(ada: Person, shell: Person) -> None:
    made = shell.log("r1", "lab")["data"]["upsertBucket"]["bucket"]
    assert made["project"]["entity"]["name"] == "lab"
    assert shell.stream("lab", "r1") == 200
    assert shell.runs() == {"r1"}
    find = '{ project(name: "birds", entityName: "lab") { run(name: "r1") { name } } }'
    assert shell.ask(find)["data"]["project"]["run"]["name"] == "r1"
    add_person(ada, "eve")
    assert "errors" in shell.log("r2", "eve")  # Somebody's.
    lab = Person(ada.client, "bob", add_person(ada, "bob").key)
    assert lab.post("/api/teams", {"name": "crew"}).status == 200
    assert "errors" in shell.log("r2", "crew")


def test_a_colleagues_scoped_key_has_their_teams(ada: Person, bob: Person) -> None:
    assert bob.post("/api/teams", {"name": "crew"}).status == 200
    program = _handed(bob, "run")
    program.log("r1", "crew")
    assert program.runs() == {"r1"}
    assert "errors" in program.log("r2", "lab")
    assert program.get("/api/teams").status == 403
    assert bob.post("/api/keys", {"kind": "shell", "user": "ada"}).status == 404


def test_with_a_programs_key_no_sweep_runs_another_program(ada: Person, shell: Person) -> None:
    config = "{method: grid, program: t.py, parameters: {lr: {values: [1, 2]}}}"
    sweep = ada.ask(MAKE_SWEEP, config=config)["data"]["upsertSweep"]["sweep"]["id"]
    more = config.replace("[1, 2]", "[1, 2, 3]")
    assert "errors" not in shell.ask(MAKE_SWEEP, id=sweep, config=more)
    for other in (
        more.replace("t.py", "evil.py"),
        more.replace("method", "command: [evil, '${args}'], method"),
    ):
        refused = shell.ask(MAKE_SWEEP, id=sweep, config=other)
        assert "program stays" in refused["errors"][0]["message"]
    assert "errors" not in ada.ask(MAKE_SWEEP, id=sweep, config=more.replace("t.py", "new.py"))


def test_with_a_programs_key_no_trial_has_words_of_its_own(ada: Person, shell: Person) -> None:
    """Values are put into the words of a command; whoever finds a key must not write those."""
    config = """
        method: random
        controller: {type: local}
        command: [bash, -c, "python ${place}/train.py --lr=${lr} ${stage}"]
        parameters:
          lr: {min: 0.1, max: 1.0}
          place: {values: [here, there]}
          net: {parameters: {kind: {value: mlp}, width: {values: [8, 16]}}}
    """
    sweep = ada.ask(MAKE_SWEEP, config=config)["data"]["upsertSweep"]["sweep"]["id"]
    good = {"lr": 0.25, "place": "there", "net": {"kind": "mlp", "width": 64}}
    for strange in (
        {"place": "/tmp/evil"},
        {"lr": "$(id)"},
        {"path": "/tmp/evil"},
        {"path": "os.system"},
        {"+x": 1},
        {"x._target_": 1},
        {"stage": "evil"},
        {"interpreter": "evil"},
        {"net": {"kind": "; id"}},
        {"net": {"+x._target_=os.system": 1}},
        {"place": ["here", {"there": "; id"}]},
    ):
        refused = shell.ask(MAKE_SWEEP, id=sweep, controller=_schedule({**good, **strange}))
        assert "not among the sweep's parameters and values" in refused["errors"][0]["message"]
    assert "errors" not in shell.ask(MAKE_SWEEP, id=sweep, controller=_schedule(good))
    # A scheduler may have a space of its own.
    plain = {**good, "rate": 1e-3, "optimizer": "adam", "layer": {"kind": "conv-3"}}
    assert "errors" not in shell.ask(MAKE_SWEEP, id=sweep, controller=_schedule(plain))
    own = _schedule({**good, "place": "elsewhere"})
    assert "errors" not in ada.ask(MAKE_SWEEP, id=sweep, controller=own)

    more = ada.ask(MAKE_SWEEP, config=config)["data"]["upsertSweep"]["sweep"]["id"]
    for other in (
        config.replace("[here, there]", "[here, there, '; id']"),
        config.replace("value: mlp", "value: '; id'"),
        config.replace("lr: {", "rate: {value: '; id'}\n          lr: {"),
    ):
        refused = shell.ask(MAKE_SWEEP, id=more, config=other)
        assert "is new in the sweep's file" in refused["errors"][0]["message"]
    wider = config.replace("max: 1.0", "max: 2.0").replace("[here, there]", "[here]")
    wider = wider.replace("lr: {", "rate: {value: fast}\n          lr: {")
    assert "errors" not in shell.ask(MAKE_SWEEP, id=more, config=wider)


def _schedule(settings: dict[str, Any]) -> str:
    args = {name: {"value": value} for name, value in settings.items()}
    return json.dumps({"schedule": [{"id": secrets.token_hex(4), "data": {"args": args}}]})


def test_keys_say_what_they_are(ada: Person, bob: Person) -> None:
    ada.post("/api/keys", {"label": "laptop"})
    ada.post("/api/keys", {"label": "reader", "scope": "runs"})
    _handed(ada)
    _handed(ada, "run", run=1).get("/api/runs")
    told = [
        (key["user"], key["kind"], key["scope"], key["expires_at"] is None) for key in _keys(ada)
    ]
    assert told == [
        ("ada", "folder", "all", True),
        ("ada", "person", "all", True),
        ("ada", "person", "runs", True),
        ("bob", "person", "all", True),
        ("ada", "shell", "runs", False),
        ("ada", "run", "runs", False),
    ]
    used = _keys(ada)[-1]
    assert used["used_at"] is not None
    assert used["used_from"] is not None
    assert [key["user"] for key in _keys(bob)] == ["bob"]
    assert ada.post("/api/keys", {"kind": "folder"}).status == 400
    assert ada.post("/api/keys", {"kind": "shell", "scope": "all"}).status == 200
    assert _keys(ada)[-1]["scope"] == "runs"
    users = {user["name"]: user["keys"] for user in ada.get("/api/users").json()}
    assert users == {"ada": 3, "bob": 1}


def test_where_a_key_was_used_from_is_told(ada: Person, shell: Person) -> None:
    assert _keys(ada)[-1]["used_from"] is None
    assert shell.runs() == set()
    assert _keys(ada)[-1]["used_from"] == "127.0.0.1"


class Clock:
    def __init__(self) -> None:
        self.offset = 0.0
        self._time = time.time

    def __call__(self) -> float:
        return self._time() + self.offset

    def pass_days(self, days: float) -> None:
        self.offset += days * api_keys.DAY


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "time", clock)
    return clock


def test_a_key_ends_some_time_after_its_last_use(
    tracker: Tracker, ada: Person, shell: Person, clock: Clock
) -> None:
    for _ in range(5):  # A run of weeks never loses its key.
        clock.pass_days(6)
        assert shell.get("/api/runs").status == 200
        asyncio.run(tracker.accounts.keep_up_keys())
    clock.pass_days(8)
    refused = shell.get("/api/runs")
    assert refused.status == 401
    assert "'shell on node1' has expired" in refused.text
    assert "runyard env" in refused.text
    assert [key["kind"] for key in _keys(ada)] == ["folder"]
    asyncio.run(tracker.accounts.keep_up_keys())
    assert "has expired" in shell.get("/api/runs").text
    clock.pass_days(3)
    asyncio.run(tracker.accounts.keep_up_keys())
    assert "this needs the key" in shell.get("/api/runs").text
    assert tracker._database.read(_count).result() == 1


def _count(connection: Any) -> int:
    count: int = connection.execute("SELECT count(*) FROM api_keys").fetchone()[0]
    return count


def test_a_runs_key_lives_as_long_as_the_run(tracker: Tracker, ada: Person, clock: Clock) -> None:
    made = ada.post("/api/runs", {"id": "r1", "project": "birds", "command": ["python"]}).json()
    program = _handed(ada, "run", run=made["key"])
    assert (
        ada.post(
            f"/api/runs/{made['key']}/attempts", {"token": "t", "host": "node1", "pid": 1}
        ).status
        == 200
    )
    for _ in range(8):  # It computes for days before it logs anything.
        clock.pass_days(0.6)
        asyncio.run(tracker.accounts.keep_up_keys())
    assert program.log("r1")["data"]["upsertBucket"]["bucket"]["name"] == "r1"
    end = {"exit_code": 0, "ended_at": time.time()}
    assert ada.post(f"/api/runs/{made['key']}/attempts/1/end", end).status == 200
    for _ in range(3):
        clock.pass_days(0.6)
        asyncio.run(tracker.accounts.keep_up_keys())
    assert program.get("/api/runs").status == 401


def test_a_server_that_was_away_takes_the_keys_of_before(
    home: Home, tracker: Tracker, ada: Person, clock: Clock
) -> None:
    idle, used = _handed(ada), _handed(ada, "run")
    clock.pass_days(0.9)
    used.get("/api/runs")
    tracker.close()
    clock.pass_days(5)
    again = Tracker(home)
    again.open(KEY)
    assert again.accounts.caller(used.key) is not None
    assert again.accounts.caller(idle.key) is not None
    again.close()


def test_what_had_ended_before_the_server_went_stays_ended(
    home: Home, tracker: Tracker, ada: Person, clock: Clock
) -> None:
    run = _handed(ada, "run")
    clock.pass_days(1.5)
    assert ada.get("/api/runs").status == 200
    tracker.close()
    again = Tracker(home)
    again.open(KEY)
    assert again.accounts.caller(run.key) is None
    again.close()


def test_retired_keys_are_refused_at_once_and_told_why(tracker: Tracker, ada: Person) -> None:
    tracker.accounts.port = 4711
    old = [_handed(ada, kind) for kind in ("shell", "run")]
    tracker.accounts.port = 4712
    new, person = _handed(ada), Person(ada.client, "ada", "")
    person.key = ada.post("/api/keys", {"label": "laptop"}).json()["key"]
    address = tracker.accounts.by_key_id
    assert tracker.accounts.retire_keys("was retired: another program had port 4711", 4711) == 2
    for each in old:
        refused = each.get("/api/runs")
        assert refused.status == 401
        assert "another program had port 4711" in refused.text
        assert address(api_keys.key_id(api_keys.hash_key(each.key))) is None
    assert "runyard env" in old[0].get("/api/runs").text
    for each in (new, person, ada):
        assert each.get("/api/runs").status == 200
    assert tracker.accounts.retire_keys("was retired") == 1
    assert new.get("/api/runs").status == 401
    assert [key["kind"] for key in _keys(ada)] == ["folder", "person"]


def test_all_shells_are_revoked_by_one_call(ada: Person) -> None:
    shells, run = [_handed(ada) for _ in range(3)], _handed(ada, "run")
    assert ada.delete("/api/users/ada/keys?kind=shell").json() == {"revoked": 3}
    assert {shell.get("/api/runs").status for shell in shells} == {401}
    assert run.get("/api/runs").status == 200
    assert ada.delete("/api/users/ada/keys?kind=folder").status == 400
    assert ada.get("/api/runs").status == 200


def test_an_agent_and_its_programs_get_a_key_of_their_own(tracker: Tracker, ada: Person) -> None:
    config = "{method: grid, program: t.py, parameters: {lr: {values: [1, 2]}}}"
    made = ada.post("/api/sweeps", {"config": config, "project": "birds"})
    assert made.status == 200, made.text
    join = f"/api/sweeps/{made.json()['key']}/agents"
    who = {"token": "t", "host": "node1", "pid": 1, "job": "12_3", "node": "n1"}
    assert "key" not in ada.post(join, who).json()  # One that does not know of keys.
    joined = ada.post(join, {**who, "wants_key": True}).json()
    agent = Person(ada.client, "ada", joined["key"])
    (job,) = [key for key in _keys(ada) if key["kind"] == "job"]
    assert job["label"] == "job 12_3 on n1"
    assert job["scope"] == "runs"
    talk = f"/api/agents/{joined['agent']}"
    claimed = agent.post(f"{talk}/claim", {"token": "c"}).json()
    assert claimed["do"] == "run"
    assert agent.stream("ada", claimed["run"]["id"]) == 200
    assert "key" not in agent.post(f"{talk}/renew", {"running": [], "wants_key": True}).json()
    # After its key was retired it asks again with its owner's.
    tracker.accounts.retire_keys("was retired")
    assert agent.post(f"{talk}/renew", {"running": []}).status == 401
    agent.key = ada.post(f"{talk}/renew", {"running": [], "wants_key": True}).json()["key"]
    assert agent.post(f"{talk}/renew", {"running": []}).status == 200
    assert agent.post(f"{talk}/leave", {"why": "done", "leaves_key": True}).status == 200
    (left,) = [key for key in _keys(ada) if key["kind"] == "job"]
    assert left["expires_at"] < time.time() + 1000


def test_an_agents_leaving_ends_no_other_key(ada: Person) -> None:
    config = "{method: grid, program: t.py, parameters: {lr: {values: [1, 2]}}}"
    made = ada.post("/api/sweeps", {"config": config, "project": "birds"}).json()
    who = {"token": "t", "host": "node1", "pid": 1}
    agent = ada.post(f"/api/sweeps/{made['key']}/agents", who).json()["agent"]
    leave = {"why": "done", "leaves_key": True}
    assert ada.post(f"/api/agents/{agent}/leave", leave).status == 200
    assert ada.get("/api/runs").status == 200
    assert _keys(ada)[0]["expires_at"] is None
