"""The web application: its routes, and which of them are open."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from runyard.server.api import (
    agent_api,
    artifact_export,
    figure_api,
    job_api,
    people_api,
    run_api,
    run_export,
    sweep_api,
)
from runyard.server.api.page_api import page_routes
from runyard.server.http.answers import HttpError
from runyard.server.http.auth_middleware import AuthMiddleware, RouteAccess
from runyard.server.http.error_middleware import ErrorMiddleware, answer_http_error
from runyard.server.http.scopes import guarded
from runyard.server.http.security_headers import SecurityHeadersMiddleware
from runyard.server.page import login, session_api
from runyard.server.page import static_files as page_files
from runyard.server.people.signed_addresses import Kind
from runyard.server.tracker import Tracker
from runyard.server.tracking.silence import watch_silence
from runyard.server.wandb_api import artifact_files
from runyard.server.wandb_api.filestream import file_stream
from runyard.server.wandb_api.graphql_route import execute
from runyard.server.wandb_api.run_file_routes import download, upload


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
            asyncio.create_task(tracker.sweeps.watch_leases()),
            asyncio.create_task(tracker.sweeps.forget_ended()),
        ]
        yield
        for task in tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await tracker.sweeps.close()

    is_open = [
        # Clients send no key with an upload: its address is signed.
        Route(f"{Kind.RUN_FILE_UP.value}/{{token}}", upload, methods=["PUT"]),
        *artifact_files.OPEN_ROUTES,
        # Clients ask, without a key, whether we take telemetry; only 404 and 405 mean no.
        Route("/sdk/{rest:path}", nothing_here, methods=["GET", "POST"]),
        *page_files.OPEN_ROUTES,
    ]
    is_open_in_api = [*login.OPEN_ROUTES, *run_api.OPEN_ROUTES]
    # For tests: agents are to get on with what W&B's own server would answer.
    only_wandb = bool(os.environ.get("RUNYARD_ONLY_WANDB"))
    # The page does not ask this; keys and teams can be made by it.
    by_graphql = Route("/graphql", execute, methods=["POST"])
    files = Route("/files/{entity}/{project}/{run}/{name:path}", download)
    needs_key = [
        by_graphql,
        Route("/files/{entity}/{project}/{run}/file_stream", file_stream, methods=["POST"]),
        # What hundreds ask at once stands early: routes are tried in their order.
        *([] if only_wandb else agent_api.ROUTES),
        files,
        *artifact_files.ROUTES,
        *run_api.ROUTES,
        *people_api.ROUTES,
        *artifact_export.ROUTES,
        *run_export.ROUTES,
        *([] if only_wandb else sweep_api.ROUTES),
        *login.ROUTES,
        *session_api.ROUTES,
        *page_routes.ROUTES,
        *job_api.ROUTES,
        *figure_api.ROUTES,
    ]
    routes = [
        *map(guarded, needs_key),
        *is_open_in_api,
        # Before the page, which would take these for an entity and a project.
        Route("/api/{rest:path}", nothing_here),
        Route("/files/{rest:path}", nothing_here),
        *is_open,
    ]
    app = Starlette(
        routes=routes,
        middleware=[
            Middleware(SecurityHeadersMiddleware),
            Middleware(ErrorMiddleware),
            Middleware(
                AuthMiddleware,
                tracker=tracker,
                routes=routes,
                access=RouteAccess(
                    everybody=[*is_open_in_api, *is_open],
                    files=[files, *artifact_files.ROUTES],
                    by_key=[by_graphql, *run_api.BY_KEY_ROUTES, *login.BY_KEY_ROUTES],
                    confirmed=[*people_api.CONFIRMED_ROUTES, *session_api.CONFIRMED_ROUTES],
                ),
            ),
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


async def nothing_here(request: Request) -> Response:
    raise HttpError(404, f"there is no {request.url.path[:200]}")
