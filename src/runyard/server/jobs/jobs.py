"""Slurm's jobs: recorded when they are submitted, and what Slurm says of them since."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from sqlite3 import Connection
from typing import Any

from runyard.server.people.permissions import Entities
from runyard.server.runs.typed_names import Ambiguous, of_entities
from runyard.server.store.sql import Row, exists, fetch_column, fetch_number, fetch_one, insert

KINDS = ("agents", "server", "shell", "build", "gauge")

_SELECT = (
    "SELECT jobs.*, users.name AS user_name, users.admin AS user_is_owner, "
    "sweeps.id AS sweep_id, sweeps.name AS sweep_name, "
    "projects.entity AS entity, projects.name AS project_name "
    "FROM jobs JOIN users ON users.key = jobs.user LEFT JOIN sweeps ON sweeps.key = jobs.sweep "
    "LEFT JOIN projects ON projects.key = sweeps.project "
)
_MOST_NAMED = 10
# 123, a task of it, a step of either.
_NUMBER = re.compile(r"([0-9]+)(?:_[0-9]+)?(?:\.\w+)?")


@dataclass(frozen=True)
class Sight:
    """Whose jobs are seen: a user's own, and those that work for sweeps of these entities."""

    user: int
    entities: Entities | None = None
    """None: everybody's."""

    def condition(self) -> tuple[str, list[Any]]:
        if self.entities is None:
            return "1", []
        (theirs,), values = of_entities(self.entities)
        return f"(jobs.user = ? OR {theirs})", [self.user, *values]


@dataclass(frozen=True)
class NewJob:
    """What was submitted; see `schema/jobs`."""

    cluster: str
    job_id: str
    kind: str
    name: str
    submitted_at: float
    sweep: int | None = None
    array: str | None = None
    tasks: int = 1
    folder: str = ""
    log_pattern: str | None = None
    asked: Mapping[str, Any] = field(default_factory=dict)
    snapshot: str | None = None
    script: str | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class News:
    """What Slurm said of a job at a time."""

    key: int
    polled_at: float
    states: Mapping[str, int]
    reason: str | None = None
    starts_at: float | None = None
    started_at: float | None = None
    ended_at: float | None = None
    used: Mapping[str, Any] = field(default_factory=dict)


def record(db: Connection, user: int, new: NewJob) -> Row:
    """Remember a job; told again, it is the same one."""
    texts = {"asked": json.dumps(new.asked), "environment": json.dumps(new.environment)}
    insert(db, "jobs", {"user": user, **vars(new), **texts}, if_missing=True)
    row: Row = db.execute(
        _SELECT + "WHERE jobs.user = ? AND cluster = ? AND job_id = ? AND submitted_at = ?",
        (user, new.cluster, new.job_id, new.submitted_at),
    ).fetchone()
    return row


def by_key(db: Connection, key: int, sight: Sight) -> Row | None:
    seen, values = sight.condition()
    return fetch_one(db, f"{_SELECT} WHERE jobs.key = ? AND {seen}", [key, *values])


def by_words(db: Connection, words: str, sight: Sight) -> Row | None:
    """The job that a person means: Slurm's number, with or without a task; its name; a part of it.

    CLUSTER/... narrows. A number is never completed: the wrong job could be cancelled by it. One
    that Slurm has given out twice means the newer.
    """
    cluster, _, name = words.rpartition("/")
    number = _NUMBER.fullmatch(name)
    seen, values = sight.condition()
    if not name:
        return None
    for where, value in (
        ("jobs.job_id = ?", name if number is None else number[1]),
        ("jobs.name = ?", name),
        ("instr(lower(jobs.name), lower(?)) > 0", name),
    ):
        rows: list[Row] = db.execute(
            f"{_SELECT} WHERE (? = '' OR jobs.cluster = ?) AND {where} AND {seen} "
            f"ORDER BY jobs.key DESC LIMIT {_MOST_NAMED}",
            [cluster, cluster, value, *values],
        ).fetchall()
        if len({(row["cluster"], row["job_id"]) for row in rows}) > 1:
            raise Ambiguous([f"{row['cluster']}/{row['job_id']} {row['name']}" for row in rows])
        if rows:
            return rows[0]
        if number is not None:
            return None
    return None


def newest(
    db: Connection,
    sight: Sight,
    *,
    sweep: int | None = None,
    open_only: bool = False,
    limit: int | None = None,
) -> list[Row]:
    seen, values = sight.condition()
    tests = [seen]
    if sweep is not None:
        tests.append("jobs.sweep = ?")
        values.append(sweep)
    if open_only:
        tests.append("jobs.ended_at IS NULL")
    return db.execute(
        f"{_SELECT} WHERE {' AND '.join(tests)} ORDER BY jobs.submitted_at DESC, jobs.key DESC "
        "LIMIT ?",
        [*values, -1 if limit is None else limit],
    ).fetchall()


def hear(db: Connection, user: int | None, news: Collection[News]) -> list[int]:
    """Slurm's newest words, several jobs' at once; the keys of those that were news.

    Words that are older than what is known change nothing. Only jobs of `user`, if one is given.
    """
    changed = []
    for job in news:
        cursor = db.execute(
            "UPDATE jobs SET polled_at = :polled_at, states = :states, reason = :reason, "
            "starts_at = :starts_at, started_at = coalesce(:started_at, started_at), "
            "ended_at = :ended_at, used = json_patch(used, :used) "
            "WHERE key = :key AND (polled_at IS NULL OR polled_at <= :polled_at) "
            "AND (:user IS NULL OR user = :user)",
            {
                **vars(job),
                "user": user,
                "states": json.dumps(job.states),
                "used": json.dumps(job.used),
            },
        )
        if cursor.rowcount:
            changed.append(job.key)
    return changed


def agents_in(db: Connection, job: Row) -> list[Row]:
    """The agents that said they are in this job, in one of its tasks, or were.

    A number is only Slurm's word: whoever recorded the job has to have started the agents too.
    """
    # Between `123_` and what follows it in the alphabet: the tasks, found by the index.
    return db.execute(
        "SELECT agents.*, (SELECT count(*) FROM trials WHERE trials.agent = agents.key "
        "AND trials.state = 'running') AS running FROM agents "
        "WHERE (job = :job OR (job >= :job || '_' AND job < :job || '`')) "
        "AND (:sweep IS NULL OR sweep = :sweep) AND user = :user "
        "AND created_at >= :since ORDER BY key",
        {**_place(job), "since": job["submitted_at"] - _SKEW},
    ).fetchall()


def failed_trials(db: Connection, job: Row) -> list[int]:
    """Numbers of the sweep's trials that failed, and ran in this job last."""
    return fetch_column(
        db,
        "SELECT trials.number FROM trials JOIN agents ON agents.key = trials.agent "
        "WHERE trials.sweep = :sweep AND trials.state = 'failed' AND agents.user = :user "
        "AND (agents.job = :job OR (agents.job >= :job || '_' AND agents.job < :job || '`')) "
        "ORDER BY trials.number",
        _place(job),
    )


def _place(job: Row) -> dict[str, Any]:
    return {"job": job["job_id"], "sweep": job["sweep"], "user": job["user"]}


def count_failed(db: Connection, jobs: Collection[Row]) -> dict[int, int]:
    """How many such trials each job has, by the job's key; those with none are left out."""
    sweeps = {job["sweep"] for job in jobs if job["sweep"] is not None}
    failed: Counter[tuple[int, str, int]] = Counter()
    for row in db.execute(
        "SELECT trials.sweep, agents.job, agents.user, count(*) AS count FROM trials "
        "JOIN agents ON agents.key = trials.agent "
        "WHERE trials.sweep IN (SELECT value FROM json_each(?)) AND trials.state = 'failed' "
        "AND agents.job IS NOT NULL GROUP BY trials.sweep, agents.job, agents.user",
        (json.dumps(sorted(sweeps)),),
    ):
        failed[row["sweep"], row["job"].partition("_")[0], row["user"]] += row["count"]
    counts = {job["key"]: failed[job["sweep"], job["job_id"], job["user"]] for job in jobs}
    return {key: count for key, count in counts.items() if count}


def key_of(db: Connection, job: str, sweep: int) -> int | None:
    """The job that an agent of this sweep is in, by Slurm's number, with or without a task."""
    row = db.execute(
        "SELECT key FROM jobs WHERE job_id = ? AND sweep = ? ORDER BY key DESC LIMIT 1",
        (job.partition("_")[0], sweep),
    ).fetchone()
    return None if row is None else int(row["key"])


# A login node's clock and the server's may differ; a number used again is years younger.
_SKEW = 3600.0


CANCEL = "cancel"
WISHES = (CANCEL,)


def set_wish(db: Connection, key: int, wish: str | None) -> None:
    """Wish something of a job, or take a wish back."""
    db.execute("UPDATE jobs SET wish = ? WHERE key = ?", (wish, key))


def is_unwanted(db: Connection, agent: Row) -> bool:
    """Whether an agent is in a job that is to be cancelled: it begins nothing more there."""
    job = (agent["job"] or "").partition("_")[0]
    if not job:
        return False
    return exists(
        db,
        "SELECT 1 FROM jobs WHERE job_id = ? AND wish = ? AND ended_at IS NULL "
        # Whoever records a job chooses its number: it ends nobody else's agents.
        "AND (sweep IS NULL OR sweep = ?) AND user = ? LIMIT 1",
        (job, CANCEL, agent["sweep"], agent["user"]),
    )


def count_wishes(db: Connection) -> int:
    """How many wishes are open: mostly none, and then no claim need look."""
    return fetch_number(db, "SELECT count(*) FROM jobs WHERE wish IS NOT NULL AND ended_at IS NULL")
