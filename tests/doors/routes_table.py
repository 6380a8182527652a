"""Every route of the server, classified, and requests that go through it.

A route that is not here fails `test_every_route.py`. To add one: decide who may come in, and give
it a row. A `$name` stands for what somebody in the world has under that name (`world.furnish`);
parameters of the path are filled in by `PARAMETERS`.
"""

# ruff: noqa: E501  (a row a door)
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Who may come in.
OPEN = "everybody: nothing of anybody's is in the answer"
SIGNED = "who was handed the address, as long as they may have what it is for"
KEY = "everybody with a key: what they may read, or make of their own"
READS = "who may read the entity of the object"
WRITES = "who may write to the entity of the object"
TEAM = "members of the team, and the admin"
ADMIN = "the admin"


@dataclass(frozen=True)
class Door:
    """`at` are its addresses where the route's own does not say enough; `bodies` what is sent."""

    who: str
    at: Sequence[str] = ()
    bodies: Sequence[Any] = ()
    # It removes what it is given.
    ends: bool = False
    # Values that are nobody's to refuse, such as whom a member invites.
    free: tuple[str, ...] = ()
    # The admin may change these rows by it, whosever they are.
    admin_changes: str = ""
    # Why an answer may tell a thing of somebody else's from one that is not there.
    tells: str = ""
    # Its answer holds numbers alone, so no secret text shows that it was let in.
    silent: bool = False


PARAMETERS: Mapping[str, str] = {
    "/api/runs/{key:int}": "/api/runs/$run",
    "/api/sweeps/{key:int}": "/api/sweeps/$sweep",
    "/api/jobs/{key:int}": "/api/jobs/$job",
    "/api/artifacts/{key:int}": "/api/artifacts/$artifact",
    "{agent:int}": "$agent",
    "{number:int}": "$attempt",
    "{entity}": "$entity",
    "{project}": "$project",
    "{run}": "$run_id",
    "{sweep}": "$sweep_id",
    "{name:path}": "$file",
    "{user}": "$user",
    "{key}": "$key",
    "{session}": "$session",
    "{team}": "$team",
    "{id}": "$report",
}
_PLACE = {"entity": "$entity", "project": "$project"}
_HELD = {"trial": "$trial", "attempt": 1}
_SWEEP = {"method": "random", "parameters": {"x": {"values": [1, 2]}}}
_NEW_RUN = {"id": "new-run", "command": ["true"], "folder": "/tmp", "host": "node1"}
_JOB = {"job_id": "$job_id", "kind": "agents", "submitted_at": 5.0}
_CURVES = {"project": "$entity/$project", "metrics": ["$metric"]}
_PROJECT = "/api/projects/{entity}/{project}"
_LIVE = "/api/live?project=$entity/$project", "/api/live?run=$run", "/api/live?sweep=$sweep"

ROUTES: Mapping[str, Door] = {
    "POST /graphql": Door(KEY, bodies=[{"query": "{ viewer { id } }"}], silent=True),
    "POST /files/{entity}/{project}/{run}/file_stream": Door(
        WRITES, bodies=[{"files": {"output.log": {"offset": 9, "content": ["new"]}}}]
    ),
    # What agents say.
    "POST /api/sweeps/{key:int}/agents": Door(
        WRITES, bodies=[{"token": "new", "host": "node1", "pid": 1, "job": "$job_id"}]
    ),
    "POST /api/agents/{agent:int}/claim": Door(WRITES, bodies=[{"token": "claimed"}]),
    "POST /api/agents/{agent:int}/renew": Door(WRITES, bodies=[{"running": [_HELD]}]),
    "POST /api/agents/{agent:int}/rewind": Door(WRITES, bodies=[{**_HELD, "saved_at": 1.0}]),
    "POST /api/agents/{agent:int}/ends": Door(
        WRITES, bodies=[{**_HELD, "exit_code": 0, "ended_at": 9.0}], ends=True
    ),
    "POST /api/agents/{agent:int}/leave": Door(WRITES, bodies=[{"why": "done"}], ends=True),
    # Files and contents.
    "GET /files/{entity}/{project}/{run}/{name:path}": Door(READS),
    "GET /artifactsV2/{region}/{rest:path}": Door(READS, at=["/artifactsV2/x/$entity/$md5_hex/f"]),
    "GET /artifacts/{rest:path}": Door(READS, at=["/artifacts/$entity/$md5_hex"]),
    "PUT /uploads/{token}": Door(SIGNED),
    "PUT /uploads/artifacts/{token}": Door(SIGNED),
    "PUT /uploads/manifests/{token}": Door(SIGNED),
    "GET /downloads/wandb_artifacts/{token}": Door(SIGNED),
    "GET /downloads/manifests/{token}/wandb_manifest.json": Door(SIGNED),
    "GET /downloads/history/{token}": Door(SIGNED),
    # The server.
    "GET /api/health": Door(KEY, silent=True),
    "GET /api/proof": Door(OPEN, at=["/api/proof?nonce=n"]),
    "POST /api/server/stop": Door(ADMIN, bodies=[{}]),
    "POST /api/server/backup": Door(ADMIN, bodies=[{"path": "$backup"}]),
    "GET /api/openapi.json": Door(KEY, silent=True),
    # Runs.
    "GET /api/run": Door(
        READS, at=["/api/run?name=$run_id", "/api/run?name=$run_name", "/api/run?name=$entity/$project/$run_id"]
    ),
    "GET /api/runs": Door(KEY, at=["/api/runs", "/api/runs?project=$project", "/api/runs?sweep=$sweep"]),
    "POST /api/runs": Door(WRITES, bodies=[{**_NEW_RUN, **_PLACE}]),
    "DELETE /api/runs/{key:int}": Door(WRITES, ends=True),
    "PATCH /api/runs/{key:int}": Door(WRITES, bodies=[{"notes": "changed"}]),
    "POST /api/runs/{key:int}/stop": Door(WRITES, bodies=[{}]),
    "GET /api/runs/{key:int}/archives": Door(READS),
    "GET /api/runs/{key:int}/metrics": Door(READS),
    "GET /api/runs/{key:int}/media": Door(READS, silent=True),
    "GET /api/runs/{key:int}/rows": Door(READS, at=["/api/runs/$run/rows", "/api/runs/$run/rows?archive=1"]),
    "GET /api/runs/{key:int}/console": Door(READS),
    "GET /api/runs/{key:int}/record": Door(READS),
    "GET /api/runs/{key:int}/artifacts": Door(READS),
    "GET /api/runs/{key:int}/lines/{stream}": Door(
        READS, at=[f"/api/runs/$run/lines/{stream}" for stream in ("history", "events", "output")]
    ),
    "POST /api/runs/{key:int}/attempts": Door(
        WRITES, bodies=[{"token": "new", "host": "node1", "pid": 1}]
    ),
    "POST /api/runs/{key:int}/attempts/{number:int}/console": Door(
        WRITES, at=["/api/runs/$run/attempts/$attempt/console?offset=0"], bodies=[b"new text"]
    ),
    "POST /api/runs/{key:int}/attempts/{number:int}/end": Door(
        WRITES, bodies=[{"exit_code": 0, "ended_at": 9.0}]
    ),
    "POST /api/curves": Door(
        READS, bodies=[{**_CURVES, "runs": ["$run"]}, _CURVES, {**_CURVES, "groups": [["$run"]]}]
    ),
    "GET /api/artifacts/{key:int}": Door(
        READS, at=["/api/artifacts/$artifact", "/api/artifacts/$artifact_of_moved"]
    ),
    "GET /api/artifacts/{key:int}/manifest": Door(READS),
    "GET /api/artifacts/of-client": Door(READS, at=["/api/artifacts/of-client?id=$client_id"], silent=True),
    # Projects, and what the page shows.
    "GET /api/projects": Door(KEY),
    f"GET {_PROJECT}/keys": Door(READS),
    f"GET {_PROJECT}/runs": Door(READS),
    f"POST {_PROJECT}/trash": Door(WRITES, bodies=[{"runs": ["$run"]}], ends=True),
    f"GET {_PROJECT}/trash": Door(READS),
    f"POST {_PROJECT}/move": Door(WRITES, bodies=[{"runs": ["$run"], "to": "elsewhere"}], ends=True),
    f"POST {_PROJECT}/stop": Door(WRITES, bodies=[{"runs": ["$run"]}]),
    "GET /api/trash": Door(KEY),
    "POST /api/trash/restore": Door(WRITES, bodies=[{"runs": ["$trashed"]}], ends=True),
    "POST /api/trash/delete": Door(WRITES, bodies=[{"runs": ["$trashed_too"]}], ends=True),
    f"POST {_PROJECT}/media": Door(READS, bodies=[{"runs": ["$run"]}]),
    f"POST {_PROJECT}/rename": Door(WRITES, bodies=[{"runs": ["$run"], "names": ["new"]}]),
    f"POST {_PROJECT}/tags": Door(WRITES, bodies=[{"runs": ["$run"], "add": ["new"]}]),
    f"POST {_PROJECT}/groups": Door(
        READS, bodies=[{"runs": ["$run"], "by": ["group"]}, {"except": ["x"]}]
    ),
    f"GET {_PROJECT}/reports": Door(READS),
    f"POST {_PROJECT}/reports": Door(WRITES, bodies=[{"title": "new"}]),
    "GET /api/reports/{id}": Door(READS),
    "PUT /api/reports/{id}": Door(WRITES, bodies=[{"title": "changed"}]),
    "DELETE /api/reports/{id}": Door(WRITES, ends=True),
    "GET /api/live": Door(READS, at=[*_LIVE, "/api/live?jobs=1&projects=1"], silent=True),
    "GET /api/agents": Door(KEY, at=["/api/agents?gone=9"]),
    # Sweeps.
    "GET /api/sweep": Door(READS, at=["/api/sweep?name=$sweep_id"]),
    "GET /api/sweeps": Door(KEY),
    "POST /api/sweeps": Door(
        WRITES, bodies=[{"config": _SWEEP, **_PLACE, "prior_runs": ["$run_id"]}, {"config": _SWEEP, **_PLACE}]
    ),
    "GET /api/sweeps/{key:int}": Door(READS),
    "DELETE /api/sweeps/{key:int}": Door(WRITES, at=["/api/sweeps/$idle_sweep"], ends=True),
    "GET /api/sweeps/{key:int}/trials": Door(READS),
    "GET /api/sweeps/{key:int}/work": Door(READS),
    "GET /api/sweeps/{key:int}/columns": Door(READS),
    "GET /api/sweeps/{key:int}/importance": Door(READS),
    "GET /api/sweeps/{key:int}/estimate": Door(READS),
    "POST /api/sweeps/{key:int}/estimate": Door(WRITES, bodies=[{"kind": "new", "estimate": {}}]),
    "POST /api/sweeps/{key:int}/state": Door(WRITES, bodies=[{"state": "running"}]),
    "POST /api/sweeps/{key:int}/budget": Door(WRITES, bodies=[{"budget": "9 hours"}]),
    "POST /api/sweeps/{key:int}/cap": Door(WRITES, bodies=[{"run_cap": 9}]),
    # Before the sweep's own, which leaves none that failed.
    "POST /api/jobs/{key:int}/retry": Door(WRITES, bodies=[{}]),
    "POST /api/sweeps/{key:int}/retry": Door(WRITES, bodies=[{}, {"trials": ["$trial"]}]),
    "GET /api/figures": Door(
        READS, at=["/api/figures?entity=$entity&project=$project&kind=$kind", "/api/figures?entity=$entity&project=$project"]
    ),
    "POST /api/figures": Door(WRITES, bodies=[{**_PLACE, "kind": "new", "figures": {}}]),
    # Slurm's jobs: a user's own, and those that work for a sweep that the user may read.
    "POST /api/jobs": Door(WRITES, bodies=[_JOB, {**_JOB, "sweep": "$sweep"}]),
    "POST /api/jobs/news": Door(
        KEY, bodies=[{"news": [{"key": "$job", "polled_at": 9e9, "states": {"RUNNING": 1}}]}], silent=True, admin_changes="jobs"
    ),
    "GET /api/job": Door(READS, at=["/api/job?name=$job_id", "/api/job?name=$job_name"]),
    "GET /api/jobs": Door(KEY, at=["/api/jobs", "/api/jobs?sweep=$sweep"]),
    "GET /api/jobs/{key:int}": Door(READS),
    "POST /api/jobs/{key:int}/wish": Door(WRITES, bodies=[{"wish": "cancel"}]),
    "POST /api/jobs/{key:int}/log": Door(READS, bodies=[{}], silent=True),
    # People.
    "POST /api/login/codes": Door(KEY, bodies=[{}], silent=True),
    "POST /api/login": Door(OPEN, bodies=[{"code": "unknown"}]),
    "POST /api/login/confirm": Door(KEY, bodies=[{"code": "unknown"}], silent=True),
    "POST /api/logout": Door(KEY, bodies=[{}], silent=True, ends=True),
    "GET /api/sessions": Door(KEY),
    "DELETE /api/sessions/{session}": Door(KEY, ends=True),
    "DELETE /api/sessions": Door(KEY, ends=True),
    "GET /api/me": Door(KEY),
    "GET /api/users": Door(KEY),
    "POST /api/users": Door(ADMIN, bodies=[{"name": "newcomer"}]),
    "GET /api/keys": Door(KEY),
    "POST /api/keys": Door(KEY, bodies=[{"label": "another"}, {"user": "$user", "label": "another"}]),
    "DELETE /api/users/{user}/keys": Door(
        KEY, at=["/api/users/$user/keys?kind=shell"], ends=True
    ),
    "DELETE /api/users/{user}/keys/{key}": Door(KEY, ends=True),
    "GET /api/teams": Door(KEY),
    "POST /api/teams": Door(
        KEY,
        bodies=[{"name": "$team"}, {"name": "of-$project", "members": ["$user"]}],
        free=("project",),
        tells="names of teams are unique over the server",
    ),
    "PUT /api/teams/{team}/members/{user}": Door(TEAM, free=("user",)),
    "DELETE /api/teams/{team}/members/{user}": Door(TEAM, ends=True, free=("user",)),
    "DELETE /api/teams/{team}": Door(TEAM, ends=True),
    # Last: whoever is gone comes in nowhere.
    "DELETE /api/users/{user}": Door(ADMIN, ends=True),
    # Nothing is there, for anybody.
    "GET /api/{rest:path}": Door(KEY, at=["/api/nothing"], silent=True),
    "GET /files/{rest:path}": Door(KEY, at=["/files/nothing"], silent=True),
    "GET /sdk/{rest:path}": Door(OPEN, at=["/sdk/otel"]),
    "POST /sdk/{rest:path}": Door(OPEN, at=["/sdk/otel"], bodies=[{}]),
    # The page is the same for everybody; what it shows, it asks for itself.
    "GET /": Door(OPEN),
    "GET /jobs": Door(OPEN),
    "GET /settings": Door(OPEN),
    "GET /assets/{name}": Door(OPEN, at=["/assets/none.js"]),
    "GET /{entity}/{project}": Door(OPEN),
    "GET /{entity}/{project}/runs/{run}": Door(OPEN),
    "GET /{entity}/{project}/sweeps/{sweep}": Door(OPEN),
    "GET /{entity}/{project}/{view:path}": Door(OPEN, at=["/$entity/$project/reports/$report"]),
}  # fmt: skip


def addresses(route: str, door: Door) -> Sequence[str]:
    """Where a door is tried."""
    if door.at:
        return door.at
    path = route.partition(" ")[2]
    for parameter, name in PARAMETERS.items():
        path = path.replace(parameter, name)
    assert "{" not in path, f"{route}: which values does this parameter take? See PARAMETERS"
    return [path]
