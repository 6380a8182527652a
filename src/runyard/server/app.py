"""The web application, put together."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from functools import partial

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Scope

from runyard.server.api import (
    agent_api,
    artifact_export,
    backup,
    charts,
    figure_api,
    history_api,
    job_api,
    openapi,
    people_api,
    run_api,
    run_changes,
    run_export,
    server_api,
    sweep_api,
)
from runyard.server.api.page_api import (
    live,
    page_agents,
    page_job_logs,
    page_jobs,
    page_media,
    page_projects,
    page_reports,
    page_runs,
    page_sweeps,
)
from runyard.server.http.answers import HttpError
from runyard.server.http.auth_middleware import AuthMiddleware
from runyard.server.http.direct_requests import DirectRoutes
from runyard.server.http.error_middleware import ErrorMiddleware, answer_http_error
from runyard.server.http.routes import Access, Endpoint
from runyard.server.http.security_headers import SecurityHeadersMiddleware
from runyard.server.page import login, session_api, static_files
from runyard.server.people.permissions import RUNS
from runyard.server.people.signed_addresses import Kind
from runyard.server.tracker import Tracker
from runyard.server.tracking.silence import watch_silence
from runyard.server.wandb_api import artifact_files
from runyard.server.wandb_api.filestream import file_stream, post_directly
from runyard.server.wandb_api.graphql_route import execute
from runyard.server.wandb_api.run_file_routes import download, download_history, upload


async def nothing_here(request: Request) -> Response:
    raise HttpError(404, f"there is no {request.url.path[:200]}")


FILE_STREAM = Endpoint("POST", "/files/{entity}/{project}/{run}/file_stream", file_stream, RUNS)
# What hundreds ask at once stands early: routes are tried in their order.
_WANDB = [
    # The page does not ask this; keys and teams can be made by it.
    Endpoint("POST", "/graphql", execute, RUNS, access=Access.KEY),
    FILE_STREAM,
    Endpoint("GET", "/files/{entity}/{project}/{run}/{name:path}", download, RUNS, Access.FILE),
    # Clients send no key with an upload: its address is signed.
    Endpoint("PUT", f"{Kind.RUN_FILE_UP.value}/{{token}}", upload, access=Access.EVERYBODY),
    Endpoint(
        "GET", f"{Kind.HISTORY_DOWN.value}/{{token}}", download_history, access=Access.EVERYBODY
    ),
    # Clients ask, without a key, whether we take telemetry; only 404 and 405 mean no.
    Endpoint("GET|POST", "/sdk/{rest:path}", nothing_here, access=Access.EVERYBODY),
]
_OWN_API = (
    server_api,
    run_api,
    backup,
    charts,
    history_api,
    people_api,
    artifact_export,
    run_export,
    login,
    session_api,
    openapi,
    live,
    page_projects,
    page_runs,
    page_media,
    run_changes,
    page_sweeps,
    page_agents,
    page_reports,
    page_jobs,
    page_job_logs,
    job_api,
    figure_api,
)
# Before the page, which would take these for an entity and a project.
_NOTHING_HERE = [
    Endpoint("GET", "/api/{rest:path}", nothing_here, RUNS),
    Endpoint("GET", "/files/{rest:path}", nothing_here, RUNS),
]


def direct_routes(tracker: Tracker, behind_proxies: Callable[[Scope], Scope]) -> DirectRoutes:
    """What is answered beside the application; none of it may stand behind another route."""

    def layered(app: ASGIApp) -> ASGIApp:
        handlers = {HttpError: answer_http_error}
        return SecurityHeadersMiddleware(ErrorMiddleware(ExceptionMiddleware(app, handlers)))

    handlers = [(FILE_STREAM, partial(post_directly, tracker))]
    return DirectRoutes(handlers, tracker.accounts, layered, behind_proxies)


def create_app(
    tracker: Tracker,
    stop: Callable[[], None],
    is_stopping: Callable[[], bool] = lambda: False,
) -> Starlette:
    """The application over an open tracker; `stop` ends the process that serves it."""

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        tasks = [
            asyncio.create_task(watch_silence(tracker, tracker.take_in_leftovers)),
            asyncio.create_task(tracker.joiner.work(tracker)),
            asyncio.create_task(people_api.note_uses(tracker)),
            asyncio.create_task(tracker.blobs.keep_clean(tracker)),
            asyncio.create_task(tracker.vacuum.work(tracker)),
            asyncio.create_task(tracker.empty_trash()),
            asyncio.create_task(tracker.sweeps.watch_leases()),
            asyncio.create_task(tracker.sweeps.forget_ended()),
        ]
        yield
        for task in tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await tracker.sweeps.close()

    # For tests: agents are to get on with what W&B's own server would answer.
    only_wandb = bool(os.environ.get("RUNYARD_ONLY_WANDB"))
    endpoints = [
        *_WANDB,
        *([] if only_wandb else agent_api.api),
        *artifact_files.ENDPOINTS,
        *([] if only_wandb else sweep_api.api),
        *(endpoint for module in _OWN_API for endpoint in module.api),
        *_NOTHING_HERE,
        *static_files.ENDPOINTS,
    ]
    app = Starlette(
        routes=endpoints,
        middleware=[
            Middleware(SecurityHeadersMiddleware),
            Middleware(ErrorMiddleware),
            Middleware(AuthMiddleware, tracker=tracker, endpoints=endpoints),
        ],
        exception_handlers={HttpError: answer_http_error},
        lifespan=lifespan,
    )
    tracker.sweeps.is_stopping = is_stopping
    app.state.tracker = tracker
    app.state.stop = stop
    app.state.keeps_port = False
    app.state.is_stopping = is_stopping
    return app
