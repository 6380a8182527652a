"""Every route that the page asks beside those that commands use too."""

from __future__ import annotations

from runyard.server.api import openapi
from runyard.server.api.page_api import (
    live,
    page_agents,
    page_job_logs,
    page_jobs,
    page_projects,
    page_reports,
    page_runs,
    page_sweeps,
)

ROUTES = [
    *openapi.ROUTES,
    *live.ROUTES,
    *page_projects.ROUTES,
    *page_runs.ROUTES,
    *page_sweeps.ROUTES,
    *page_agents.ROUTES,
    *page_reports.ROUTES,
    *page_jobs.ROUTES,
    *page_job_logs.ROUTES,
]
