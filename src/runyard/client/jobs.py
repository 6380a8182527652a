"""Slurm's jobs, as the server remembers them, typed.

The server never asks Slurm: commands on the login node do, and tell it. Every call may be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from runyard.client.http import ApiPart
from runyard.shapes.jobs import Job, JobDetail, JobNews, NewJob


class JobsApi(ApiPart):
    """What the server remembers of jobs."""

    def record(self, new: NewJob) -> Job:
        """Tell of a job that was submitted."""
        return self._connection.post("/api/jobs", new)

    def jobs(
        self, *, sweep: int | None = None, open_only: bool = False, limit: int | None = None
    ) -> list[Job]:
        """The newest first; of one sweep, by its key; `open_only`: those not known to be over."""
        return self._connection.get(
            "/api/jobs", sweep=sweep, open=1 if open_only else None, limit=limit
        )

    def job(self, words: str) -> JobDetail:
        """By Slurm's number, with or without a task (123, 123_4), by name, or by a part of it."""
        return self._connection.get("/api/job", name=words)

    def by_key(self, key: int) -> JobDetail:
        return self._connection.get(f"/api/jobs/{key}")

    def wish(self, key: int, wish: Literal["cancel"] | None) -> None:
        """Have a job cancelled by the next command on its login node, or take that back."""
        self._connection.post(f"/api/jobs/{key}/wish", {"wish": wish})

    def update(self, key: int, news: JobNews) -> None:
        """Tell what Slurm said; words older than what the server knows change nothing."""
        self.update_all({key: news})

    def update_all(self, news: Mapping[int, JobNews]) -> None:
        """The same for many at once, in one request."""
        if news:
            content = [{"key": key, **changes} for key, changes in news.items()]
            self._connection.post("/api/jobs/news", {"news": content})
