"""A small world: people, teams and one object of every kind for each, full of secret texts."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from dataclasses import dataclass, field
from typing import Any

from runyard.server.tracker import Tracker
from tests.doors.markers import marker
from tests.doors.queries import AGENT, ALERT, FILE, FILES, LINK, REWIND, UPSERT, USE
from tests.server.artifact_logger import Logger, digest_of, manifest_of, md5
from tests.server.asgi import KEY, Client
from tests.server.browsers import Visitor
from tests.server.persons import Person, add_person, make_team


def gid(kind: str, key: object) -> str:
    """The id under which clients know a thing."""
    return base64.b64encode(f"{kind}:{key}".encode()).decode()


# What one entity has, by the names that the tables of doors use.
Belongings = dict[str, Any]

# As a belonging that is not there: what is somebody else's has to be answered just as this.
GHOST: Belongings = {
    "entity": "ghost", "project": "ghostproject", "project_number": 99990, "user": "ghostuser",
    "team": "ghostteam", "member_gid": gid("Member", "ghostteam/ghostuser"), "key": "0123456789ab",
    "key_gid": gid("ApiKey", "ghost/0123456789ab"), "report": "ghostrep", "backup": "/nowhere/copy",
    "trashed": 99981, "trashed_too": 99982,
    "run": 99991, "run_id": "ghostrun", "run_gid": gid("Run", 99991), "run_name": "ghostname",
    "run_v1_gid": gid("Run", "v1:ghostrun:ghostproject:ghost"),
    "tag": "ghosttag", "group": "ghostgroup", "metric": "ghostmetric", "kind": "ghostkind",
    "attempt": 1, "file": "ghostfile", "file_gid": gid("File", '[99991, "ghostfile"]'),
    "artifact": 99992, "artifact_gid": gid("Artifact", 99992), "lent_gid": gid("Artifact", 99993),
    "neighbour_gid": gid("Artifact", 99994), "artifact_of_moved": 99995, "type": "ghosttype",
    "collection": "ghostcollection", "collection_gid": gid("ArtifactCollection", 99993),
    "portfolio": "ghostportfolio", "portfolio_gid": gid("ArtifactCollection", 99994),
    "alias": "ghostalias", "manifest_gid": gid("ArtifactManifest", 99995), "digest": "ghostdigest",
    "md5": "AAAAAAAAAAAAAAAAAAAAAA==", "md5_hex": "0" * 32, "client_id": "ghostclient",
    "sweep": 99996, "idle_sweep": 99989, "sweep_id": "ghostswp", "sweep_gid": gid("Sweep", 99996),
    "agent": 99997, "stock_gid": gid("Agent", 99998), "trial": 1, "job": 99998, "job_id": "99998",
    "job_name": "ghostjob", "session": "0123456789ab", "suggested_gid": gid("Sweep", 99988),
}  # fmt: skip


@dataclass
class World:
    """Everybody, and what belongs to whom."""

    client: Client
    tracker: Tracker
    people: dict[str, Person] = field(default_factory=dict)
    # By audience: `bob` is bob's own, `lab` the team's.
    belongings: dict[str, Belongings] = field(default_factory=dict)
    # Signed addresses, by (method, path): good ones, and those that should be so no more.
    addresses: list[tuple[str, str]] = field(default_factory=list)
    stale: list[tuple[str, str]] = field(default_factory=list)
    # What somebody has sent, and may read again.
    said: dict[str, set[str]] = field(default_factory=dict)
    # Keys beside everybody's own, by what they are.
    keys: dict[str, str] = field(default_factory=dict)

    def entity(self, audience: str) -> str:
        entity: str = self.belongings[audience]["entity"]
        return entity


def build(client: Client, tracker: Tracker) -> World:
    """Bob owns things, alone and in a team with tom, which fay has left; eve shares nothing."""
    world = World(client, tracker)
    ada = world.people["ada"] = Person(client, tracker.accounts.caller(KEY).name, KEY)  # type: ignore[union-attr]
    for name in ("bob", "tom", "fay", "eve"):
        world.people[name] = add_person(ada, marker(f"person{name}"))
    bob, tom, fay, eve = (world.people[name] for name in ("bob", "tom", "fay", "eve"))
    teams = {"lab": marker("teamlab"), "guild": marker("teamguild")}
    make_team(bob, teams["lab"], tom, fay)
    make_team(bob, teams["guild"])
    for audience, person in (("bob", bob), ("tom", tom), ("eve", eve), ("fay", fay), ("ada", ada)):
        furnish(world, audience, person, person.name)
    furnish(world, "lab", bob, teams["lab"])
    teams["bob"] = teams.pop("guild")
    for audience in ("tom", "eve", "fay", "ada"):
        teams[audience] = marker(audience)
        make_team(world.people[audience], teams[audience])
    world.belongings["lab"]["user"] = tom.name
    for audience, team in teams.items():
        things = world.belongings[audience]
        things |= {"team": team, "member_gid": gid("Member", f"{team}/{things['user']}")}
    _lend(world)
    _move(world)
    _part_with(world, fay, teams["lab"])
    for things in world.belongings.values():
        things.setdefault("artifact_of_moved", GHOST["artifact_of_moved"])
        things["backup"] = str(tracker.home.path.with_name("copy"))
    _keys(world)
    return world


def furnish(world: World, audience: str, person: Person, entity: str) -> None:
    """One of everything in an entity, made by a person as clients and commands make it."""
    things: Belongings = {name: marker(audience) for name in ("project", "run_id", "run_name")}
    things |= {"entity": entity, "user": person.name}
    world.belongings[audience] = things
    _runs(world, audience, person, things)
    _artifacts(world, audience, person, things)
    _sweeps(world, audience, person, things)
    project = f"/api/projects/{entity}/{things['project']}"
    texts = {"title": marker(audience), "notes": marker(audience), "view": {"x": marker(audience)}}
    things["report"] = _made(person.post(f"{project}/reports", texts))["id"]
    things["kind"] = marker(audience)
    figures = {"project": things["project"], "entity": entity, "kind": things["kind"],
               "hardware": marker(audience), "figures": {"seconds": marker(audience)}}  # fmt: skip
    _made(person.post("/api/figures", figures))
    # A key is its maker's, also where the rest is the team's.
    label = marker("bob" if audience == "lab" else audience)
    made = _made(person.post("/api/keys", {"label": label}))
    things |= {"key": made["id"], "key_gid": gid("ApiKey", f"{person.name}/{made['id']}")}
    Visitor(person.client, person.key)
    things["session"] = person.get("/api/sessions").json()[0]["id"]


def _runs(world: World, audience: str, person: Person, things: Belongings) -> None:
    def text() -> str:
        return marker(audience)

    place = {"entityName": things["entity"], "modelName": things["project"]}
    things |= {"metric": text(), "tag": text(), "group": text(), "file": text()}
    for run_id in (things["run_id"], text(), text()):
        new = {**place, "name": run_id, "displayName": things["run_name"], "notes": text(),
               "groupName": things["group"], "jobType": text(), "host": text(),
               "tags": [things["tag"]], "jobProgram": text(), "commit": text(), "jobRepo": text(),
               "config": json.dumps({text(): {"value": text()}}),
               "summaryMetrics": json.dumps({text(): text()})}  # fmt: skip
        bucket = _said(person, UPSERT, new)["upsertBucket"]["bucket"]["id"]
        things.setdefault("run_gid", bucket)
        by_names = f"v1:{run_id}:{things['project']}:{things['entity']}"
        things.setdefault("run_v1_gid", gid("Run", by_names))
        media = {"_type": text()}
        rows = [
            json.dumps({"_step": step, things["metric"]: step, text(): text(), text(): media})
            for step in (0, 1)
        ]
        stream = f"/files/{things['entity']}/{things['project']}/{run_id}/file_stream"
        event = json.dumps({"_runtime": 1, f"system.{text()}": 1.0})
        _made(person.post(stream, {"files": {
            "wandb-history.jsonl": {"offset": 0, "content": rows},
            "wandb-events.jsonl": {"offset": 0, "content": [event]},
            "output.log": {"offset": 0, "content": [text()]},
        }}))  # fmt: skip
    run = _made(
        person.get("/api/run", name=f"{things['entity']}/{things['project']}/{things['run_id']}")
    )
    things["run"] = run["key"]
    named = {"entityName": things["entity"], "projectName": things["project"],
             "runName": things["run_id"]}  # fmt: skip
    address = _said(person, FILE, {**named, "files": [things["file"]]})
    url = address["createRunFiles"]["files"][0]["uploadUrl"]
    assert world.client.put(url, text().encode()).status == 200
    world.addresses.append(("PUT", _path(url)))
    things["file_gid"] = gid("File", json.dumps([run["key"], things["file"]]))
    _said(person, ALERT, {**named, "title": text(), "text": text(), "severity": "INFO"})
    # What a rewind takes out lies in an archive.
    _said(person, REWIND, {**named, "metricName": "_step", "metricValue": 0})
    for name in ("trashed", "trashed_too"):
        _said(person, UPSERT, {**place, "name": text(), "displayName": text()})
        newest = _made(person.get("/api/runs", project=things["project"], limit=1))[0]
        things[name] = newest["key"]
        _made(person.client.request("DELETE", f"/api/runs/{newest['key']}", key=person.key))
    begun = {"token": text(), "host": text(), "pid": 7}
    things["attempt"] = _made(person.post(f"/api/runs/{run['key']}/attempts", begun))["number"]
    console = f"/api/runs/{run['key']}/attempts/{things['attempt']}/console?offset=0"
    _made(person.client.post(console, text().encode(), key=person.key))


def _artifacts(world: World, audience: str, person: Person, things: Belongings) -> None:
    names = ("collection", "portfolio", "alias", "client_id")
    things |= {name: marker(audience) for name in names}
    # What fay has linked to a portfolio of hers has given that its type.
    things["type"] = marker("labfay" if audience == "lab" else audience)
    version = log_version(world, audience, person, things)
    things |= version
    _link(person, version["artifact_gid"], things["entity"], things["project"], things["portfolio"])
    for name in ("collection", "portfolio"):
        things[f"{name}_gid"] = _collection(person, things, things[name])
    use = {"artifactID": version["artifact_gid"], "entityName": things["entity"],
           "projectName": things["project"], "runName": things["run_id"]}  # fmt: skip
    _said(person, USE, use)


def log_version(
    world: World, audience: str, person: Person, things: Belongings, **more: Any
) -> Belongings:
    """A version with a file, whose every text is for this audience."""
    logger = Logger(world.client, key=person.key)
    content = marker(audience).encode()
    manifest = manifest_of(
        {marker(audience): content}, **{marker(audience): f"file:///{marker(audience)}"}
    )
    new = {"entityName": things["entity"], "projectName": things["project"],
           "runName": things["run_id"], "artifactTypeName": things["type"],
           "artifactCollectionName": things["collection"], "digest": digest_of(manifest),
           "description": marker(audience), "metadata": json.dumps({"x": marker(audience)}),
           "tags": [{"tagName": marker(audience)}], "clientID": things["client_id"],
           "aliases": [{"artifactCollectionName": things["collection"], "alias": name}
                       for name in ("latest", things["alias"])], **more}  # fmt: skip
    create = "mutation ($input: I!) { createArtifact(input: $input) { artifact { id } } }"
    version: str = logger.ask(create, input=new)["createArtifact"]["artifact"]["id"]
    logger.upload(
        version,
        {name: content for name, entry in manifest["contents"].items() if "ref" not in entry},
    )
    assert logger.send_manifest(version, manifest).status == 200
    logger.commit(version)
    found = logger.ask(FILES, id=version)["artifact"]
    urls = [found["currentManifest"]["file"]["directUrl"],
            *(edge["node"]["directUrl"] for edge in found["files"]["edges"])]  # fmt: skip
    world.addresses += [("GET", _path(url)) for url in urls if url]
    key = int(base64.b64decode(version).decode().partition(":")[2])
    return {"artifact_gid": version, "artifact": key,
            "manifest_gid": found["currentManifest"]["id"], "digest": digest_of(manifest),
            "md5": md5(content), "md5_hex": _hex(content)}  # fmt: skip


def _sweeps(world: World, audience: str, person: Person, things: Belongings) -> None:
    def text() -> str:
        return marker(audience)

    config = {"method": "grid", "program": text(), "name": text(), "description": text(),
              "metric": {"name": things["metric"], "goal": "minimize"},
              "parameters": {text(): {"values": [text(), text(), text(), text()]}}}  # fmt: skip
    new = {
        "config": config,
        "project": things["project"],
        "entity": things["entity"],
        "folder": text(),
    }
    things["idle_sweep"] = _made(person.post("/api/sweeps", new))["key"]
    suggested = {**new, "config": {**config, "scheduler": {"engine": "wandb"}}}
    things["suggested_gid"] = gid("Sweep", _made(person.post("/api/sweeps", suggested))["key"])
    sweep = _made(person.post("/api/sweeps", new))
    things |= {
        "sweep": sweep["key"],
        "sweep_id": sweep["id"],
        "sweep_gid": gid("Sweep", sweep["key"]),
    }
    things["job_id"] = str(4000 + sweep["key"])
    job = {"job_id": things["job_id"], "kind": "agents", "name": text(), "sweep": sweep["key"],
           "cluster": text(), "folder": text(), "log_pattern": text(), "asked": {"x": text()},
           "snapshot": text(), "script": marker("bob" if audience == "lab" else audience),
           "environment": {"x": marker("bob" if audience == "lab" else audience)}}  # fmt: skip
    made = _made(person.post("/api/jobs", job))
    things |= {"job": made["key"], "job_name": job["name"]}
    begun = {
        "token": text(),
        "host": text(),
        "pid": 7,
        "slots": 9,
        "job": things["job_id"],
        "node": text(),
    }
    agents = f"/api/sweeps/{sweep['key']}/agents"
    things["agent"] = _made(person.post(agents, begun))["agent"]
    aside = _made(person.post(agents, {"token": text(), "host": text(), "pid": 7}))["agent"]
    held = _made(person.post(f"/api/agents/{things['agent']}/claim", {"token": "held0"}))
    things["trial"] = held["trial"]["number"]
    for agent in (things["agent"], aside):  # One trial fails in the job, one outside of it.
        held = _made(person.post(f"/api/agents/{agent}/claim", {"token": f"failing{agent}"}))
        end = {"trial": held["trial"]["number"], "attempt": held["attempt"], "exit_code": 1,
               "ended_at": time.time()}  # fmt: skip
        _made(person.post(f"/api/agents/{agent}/ends", end))
    estimate = {"kind": text(), "estimate": {"x": text()}}
    _made(person.post(f"/api/sweeps/{sweep['key']}/estimate", estimate))
    stock = {"entityName": things["entity"], "projectName": things["project"],
             "sweep": sweep["id"], "host": text()}  # fmt: skip
    things["stock_gid"] = _said(person, AGENT, stock)["createAgent"]["agent"]["id"]


def _lend(world: World) -> None:
    """Bob lends one of two private versions of a collection to the team; and keeps one of the
    team's in a portfolio of his own. The lent version's texts are for the team, its neighbour's
    are not."""
    bob, own, lab = world.people["bob"], world.belongings["bob"], world.belongings["lab"]
    place = {"entity": own["entity"], "project": marker("lab"), "run_id": "none",
             "collection": marker("lab"), "type": lab["type"], "alias": marker("bob")}  # fmt: skip
    lent = log_version(world, "lab", bob, {**place, "client_id": marker("lab")}, runName="")
    neighbour = log_version(world, "bob", bob, {**place, "client_id": marker("bob")}, runName="")
    _link(bob, lent["artifact_gid"], lab["entity"], lab["project"], marker("lab"))
    # From here on bob's portfolio is the one with a version of the team's in it.
    own["portfolio"] = marker("bob")
    for version in (lent, lab):
        _link(bob, version["artifact_gid"], own["entity"], own["project"], own["portfolio"])
    own["portfolio_gid"] = _collection(bob, own, own["portfolio"])
    for things in world.belongings.values():
        things |= {"lent_gid": lent["artifact_gid"], "neighbour_gid": neighbour["artifact_gid"]}


def _move(world: World) -> None:
    """Bob announces a run of the team's; its program then names his own entity, and it moves
    there. What it had logged stays with the team."""
    bob, own, lab = world.people["bob"], world.belongings["bob"], world.belongings["lab"]
    run_id = marker("bob")
    new = {"id": run_id, "project": lab["project"], "entity": lab["entity"], "command": ["train"]}
    _made(bob.post("/api/runs", new))
    place = {**lab, "run_id": run_id, "client_id": marker("lab"), "alias": marker("lab")}
    lab["artifact_of_moved"] = log_version(world, "lab", bob, place)["artifact"]
    moved = {"name": run_id, "entityName": own["entity"], "modelName": own["project"]}
    _said(bob, UPSERT, moved)


def _part_with(world: World, fay: Person, team: str) -> None:
    """Fay, while she is a member, takes along what she can; then she goes."""
    lab, own = world.belongings["lab"], world.belongings["fay"]
    for version in (lab["artifact_gid"], lab["lent_gid"]):
        use = {"artifactID": version, "entityName": own["entity"], "projectName": own["project"],
               "runName": own["run_id"]}  # fmt: skip
        _said(fay, USE, use)
        _link(fay, lab["artifact_gid"], own["entity"], own["project"], marker("fay"))
        found = fay.ask(FILES, id=version)["data"]["artifact"]
        urls = [found["currentManifest"]["file"]["directUrl"],
                *(edge["node"]["directUrl"] for edge in found["files"]["edges"])]  # fmt: skip
        world.stale += [("GET", _path(url)) for url in urls if url]
    named = {"entityName": lab["entity"], "projectName": lab["project"], "runName": lab["run_id"]}
    url = _said(fay, FILE, {**named, "files": [lab["file"]]})["createRunFiles"]["files"][0][
        "uploadUrl"
    ]
    world.stale.append(("PUT", _path(url)))
    job = {
        "job_id": lab["job_id"],
        "kind": "agents",
        "name": marker("labfay"),
        "sweep": lab["sweep"],
    }
    own |= {"job": _made(fay.post("/api/jobs", job))["key"], "job_name": job["name"]}
    # Of others' jobs everybody can see the number in Slurm's own list, and record it.
    number = world.belongings["bob"]["job_id"]
    for audience in ("eve", "tom"):
        record = {"job_id": number, "kind": "agents", "name": marker(audience)}
        things = world.belongings[audience]
        things |= {"job": _made(world.people[audience].post("/api/jobs", record))["key"]}
        things |= {"job_name": record["name"]}
    assert world.people["bob"].delete(f"/api/teams/{team}/members/{fay.name}").status == 200


def _keys(world: World) -> None:
    """Keys that were good once, and keys for runs alone: a colleague's, and the admin's."""
    eve, ada = world.people["eve"], world.people["ada"]
    for name, person, wanted in (
        ("revoked", eve, {}),
        ("expired", eve, {"kind": "shell"}),
        ("for runs", eve, {"scope": "runs"}),
        ("admin's for runs", ada, {"kind": "shell"}),
    ):
        made = _made(person.post("/api/keys", wanted))
        world.keys[name] = made["key"]
        if name == "revoked":
            assert eve.delete(f"/api/users/{eve.name}/keys/{made['id']}").status == 200
        if name == "expired":
            world.client.together(world.tracker.accounts.end_key(made["id"], 1.0))


def _link(person: Person, version: str, entity: str, project: str, portfolio: str) -> None:
    given = {"artifactID": version, "artifactPortfolioName": portfolio, "entityName": entity,
             "projectName": project, "aliases": []}  # fmt: skip
    _said(person, LINK, given)


def _collection(person: Person, things: Belongings, name: str) -> str:
    query = """query ($e: S, $p: S, $n: S) { project(name: $p, entityName: $e) {
      internalId artifactCollection(name: $n) { id } } }"""
    found = person.ask(query, e=things["entity"], p=things["project"], n=name)["data"]["project"]
    things["project_number"] = found["internalId"]
    return str(found["artifactCollection"]["id"])


def _made(answer: Any) -> Any:
    assert answer.status == 200, answer.text
    return answer.json()


def _said(person: Person, document: str, given: dict[str, Any]) -> Any:
    answer = person.ask(document, input=given)
    assert "errors" not in answer, answer["errors"]
    return answer["data"]


def _path(url: str) -> str:
    return re.sub(r"^\w+://[^/]+", "", url)


def _hex(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()
