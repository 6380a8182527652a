"""What a key for runs opens: one table for all routes and GraphQL mutations.

Such keys are in the environment of programs (`people/api_keys.py`), and may fall into other hands.
They log and read their owner's runs. Whatever is not named here needs the owner's own key: a new
route is closed to them until it is put into one of the two lists, which a test demands.
"""

from __future__ import annotations

import copy

from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from runyard.server.http.answers import answer
from runyard.server.people.permissions import ALL

REFUSAL = (
    "this needs your own key: the one in the environment of shells, runs and jobs is for logging "
    "and reading runs; commands like `runyard users keys` use your own"
)

# Method and path, as the route has it.
RUNS_ROUTES: frozenset[tuple[str, str]] = frozenset(
    {
        # The stock client.
        ("POST", "/graphql"),
        ("POST", "/files/{entity}/{project}/{run}/file_stream"),
        ("GET", "/files/{entity}/{project}/{run}/{name:path}"),
        ("GET", "/artifactsV2/{region}/{rest:path}"),
        ("GET", "/artifacts/{rest:path}"),
        # Agents on nodes, and what `runyard run` records.
        ("POST", "/api/sweeps/{key:int}/agents"),
        ("POST", "/api/agents/{agent:int}/claim"),
        ("POST", "/api/agents/{agent:int}/renew"),
        ("POST", "/api/agents/{agent:int}/rewind"),
        ("POST", "/api/agents/{agent:int}/ends"),
        ("POST", "/api/agents/{agent:int}/leave"),
        ("POST", "/api/runs"),
        ("POST", "/api/runs/{key:int}/attempts"),
        ("POST", "/api/runs/{key:int}/attempts/{number:int}/console"),
        ("POST", "/api/runs/{key:int}/attempts/{number:int}/end"),
        # Reading runs, sweeps and artifacts.
        ("GET", "/api/me"),
        ("GET", "/api/health"),
        ("GET", "/api/run"),
        ("GET", "/api/runs"),
        ("POST", "/api/curves"),
        ("GET", "/api/runs/{key:int}/archives"),
        ("GET", "/api/runs/{key:int}/metrics"),
        ("GET", "/api/runs/{key:int}/rows"),
        ("GET", "/api/runs/{key:int}/console"),
        ("GET", "/api/runs/{key:int}/record"),
        ("GET", "/api/runs/{key:int}/lines/{stream}"),
        ("GET", "/api/runs/{key:int}/artifacts"),
        ("GET", "/api/artifacts/{key:int}"),
        ("GET", "/api/artifacts/{key:int}/manifest"),
        ("GET", "/api/sweep"),
        ("GET", "/api/sweeps"),
        ("GET", "/api/sweeps/{key:int}"),
        ("GET", "/api/sweeps/{key:int}/trials"),
        ("GET", "/api/sweeps/{key:int}/work"),
        ("GET", "/api/projects"),
        ("GET", "/api/projects/{entity}/{project}/keys"),
        ("GET", "/api/projects/{entity}/{project}/runs"),
        ("POST", "/api/projects/{entity}/{project}/groups"),
        ("GET", "/api/sweeps/{key:int}/columns"),
        ("GET", "/api/sweeps/{key:int}/importance"),
        ("GET", "/api/openapi.json"),
        # Nothing is there.
        ("GET", "/api/{rest:path}"),
        ("GET", "/files/{rest:path}"),
    }
)

WHOLE_ROUTES: frozenset[tuple[str, str]] = frozenset(
    {
        # The server, users, keys, teams, logins.
        ("POST", "/api/server/stop"),
        ("POST", "/api/server/backup"),
        ("GET", "/api/users"),
        ("POST", "/api/users"),
        ("DELETE", "/api/users/{user}"),
        ("GET", "/api/keys"),
        ("POST", "/api/keys"),
        ("DELETE", "/api/users/{user}/keys"),
        ("DELETE", "/api/users/{user}/keys/{key}"),
        ("GET", "/api/teams"),
        ("POST", "/api/teams"),
        ("DELETE", "/api/teams/{team}"),
        ("PUT", "/api/teams/{team}/members/{user}"),
        ("DELETE", "/api/teams/{team}/members/{user}"),
        ("POST", "/api/login/codes"),
        ("POST", "/api/login/confirm"),
        ("POST", "/api/logout"),
        ("GET", "/api/sessions"),
        ("DELETE", "/api/sessions"),
        ("DELETE", "/api/sessions/{session}"),
        # Jobs: a record names files that the server then reads, and a retry runs programs.
        ("GET", "/api/job"),
        ("GET", "/api/jobs"),
        ("POST", "/api/jobs"),
        ("POST", "/api/jobs/news"),
        ("GET", "/api/jobs/{key:int}"),
        ("POST", "/api/jobs/{key:int}/log"),
        ("POST", "/api/jobs/{key:int}/wish"),
        ("POST", "/api/jobs/{key:int}/retry"),
        # Steering by commands and the page; programs have W&B's ways.
        ("DELETE", "/api/runs/{key:int}"),
        ("PATCH", "/api/runs/{key:int}"),
        ("POST", "/api/runs/{key:int}/stop"),
        ("POST", "/api/sweeps"),
        ("DELETE", "/api/sweeps/{key:int}"),
        ("POST", "/api/sweeps/{key:int}/state"),
        ("POST", "/api/sweeps/{key:int}/cap"),
        ("POST", "/api/sweeps/{key:int}/retry"),
        ("GET", "/api/sweeps/{key:int}/estimate"),
        ("POST", "/api/sweeps/{key:int}/estimate"),
        ("GET", "/api/figures"),
        ("POST", "/api/figures"),
        # The page.
        ("GET", "/api/live"),
        ("GET", "/api/agents"),
        ("POST", "/api/projects/{entity}/{project}/tags"),
        ("GET", "/api/projects/{entity}/{project}/reports"),
        ("POST", "/api/projects/{entity}/{project}/reports"),
        ("GET", "/api/reports/{id}"),
        ("PUT", "/api/reports/{id}"),
        ("DELETE", "/api/reports/{id}"),
    }
)

RUNS_MUTATIONS: frozenset[str] = frozenset(
    {
        "upsertBucket",
        "upsertModel",
        "createRunFiles",
        "deleteFiles",
        "markRunFilesUploaded",
        "rewindRun",
        "notifyScriptableRunAlert",
        "deleteRun",
        "stopRun",
        "updateRunState",
        "commitArtifact",
        "createArtifact",
        "createArtifactFiles",
        "createArtifactManifest",
        "createArtifactType",
        "updateArtifactManifest",
        "useArtifact",
        "addAliases",
        "deleteAliases",
        "createArtifactCollectionTagAssignments",
        "deleteArtifactCollectionTagAssignments",
        "deleteArtifact",
        "deleteArtifactPortfolio",
        "deleteArtifactSequence",
        "linkArtifact",
        "unlinkArtifact",
        "moveArtifactSequence",
        "updateArtifact",
        "updateArtifactPortfolio",
        "updateArtifactSequence",
        # Except what would let agents run another program (`wandb_api/fields/sweep_mutations.py`).
        "upsertSweep",
        "createAgent",
        "agentHeartbeat",
    }
)

WHOLE_MUTATIONS: frozenset[str] = frozenset(
    {"generateApiKey", "deleteApiKey", "createTeam", "createInvite", "deleteInvite"}
)


def guarded(route: Route) -> Route:
    """The route, closed to keys for runs unless the table names it."""
    if all((method, route.path) in RUNS_ROUTES for method in (route.methods or set()) - {"HEAD"}):
        return route
    inner, closed = route.app, copy.copy(route)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["caller"].scope == ALL:
            await inner(scope, receive, send)
        else:
            await answer({"error": REFUSAL}, 403)(scope, receive, send)

    closed.app = app
    return closed
