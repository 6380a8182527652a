"""The machine finds faults that were once there: each is put back, and has to show."""

from __future__ import annotations

import sqlite3

import pytest

from runyard.server.artifacts import artifacts, visibility
from runyard.server.jobs import jobs
from runyard.server.store.sql import Row
from runyard.server.wandb_api.fields import artifact_mutations
from tests.doors.attempts import COLLEAGUE, FORMER_MEMBER, TEAM_MATE, Actor
from tests.doors.trying_fields import arguments_in, mutation_faults, walked
from tests.doors.trying_routes import route_faults
from tests.doors.world import World

JOBS = [
    "POST /api/jobs",
    "GET /api/jobs/{key:int}",
    "POST /api/jobs/{key:int}/wish",
]


def test_a_lent_version_that_leads_to_its_neighbour(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`artifactSequence.latestArtifact`, which looked at nobody's rights."""

    def latest(connection: sqlite3.Connection, key: int, _entities: object) -> Row | None:
        return artifacts.latest(connection, key)

    arguments = {
        field: given
        for field, given in arguments_in(world).items()
        if field in ("Query.artifact", "Query.project")
    }
    assert walked(world, TEAM_MATE, arguments).leaks == []
    monkeypatch.setattr(visibility, "latest", latest)
    found = walked(world, TEAM_MATE, arguments).leaks
    assert [leak for leak in found if leak.endswith("by Artifact.description")]
    assert [leak for leak in found if leak.endswith("by File.name")]


def test_aliases_in_a_private_portfolio(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A team-mate moves names in a portfolio that is somebody else's."""
    assert mutation_faults(world, TEAM_MATE, ["addAliases"])[0] == []
    monkeypatch.setattr(artifact_mutations, "must_write", lambda *_: None)
    found, _ = mutation_faults(world, TEAM_MATE, ["addAliases"])
    assert [fault for fault in found if "changes aliases of" in fault]


@pytest.mark.parametrize("actor", [COLLEAGUE, FORMER_MEMBER], ids=lambda actor: actor.label)
def test_agents_by_a_job_record_with_their_number(
    world: World, actor: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever records a job chooses its number: it neither shows nor ends others' agents."""

    def agents_in(connection: sqlite3.Connection, job: Row) -> list[Row]:
        return connection.execute(
            "SELECT *, 0 AS running FROM agents WHERE job = ?", (job["job_id"],)
        ).fetchall()

    def is_unwanted(connection: sqlite3.Connection, agent: Row) -> bool:
        found = connection.execute(
            "SELECT 1 FROM jobs WHERE job_id = ? AND wish = 'cancel'", (agent["job"],)
        )
        return found.fetchone() is not None

    assert route_faults(world, actor, JOBS)[0] == []
    monkeypatch.setattr(jobs, "agents_in", agents_in)
    found, _ = route_faults(world, actor, JOBS[:2])
    assert [fault for fault in found if "shows" in fault]
    monkeypatch.setattr(jobs, "is_unwanted", is_unwanted)
    # The wish of before is still there: it is taken back, and made again.
    own = world.people[str(actor.person)]
    own.post(f"/api/jobs/{world.belongings[str(actor.person)]['job']}/wish", {"wish": None})
    found, _ = route_faults(world, actor, JOBS[2:])
    assert [fault for fault in found if "is told exit" in fault]
    own.post(f"/api/jobs/{world.belongings[str(actor.person)]['job']}/wish", {"wish": None})
