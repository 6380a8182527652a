"""Every route that the page asks beside those that commands use too."""

from __future__ import annotations

from runyard.server.page_api import (
    agents,
    job_logs,
    live,
    openapi,
    projects,
    reports,
    runs,
    sweeps,
    wishes,
)

ROUTES = [
    *openapi.ROUTES,
    *live.ROUTES,
    *projects.ROUTES,
    *runs.ROUTES,
    *sweeps.ROUTES,
    *agents.ROUTES,
    *reports.ROUTES,
    *wishes.ROUTES,
    *job_logs.ROUTES,
]
