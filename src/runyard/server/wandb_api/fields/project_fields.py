"""A project, as GraphQL fields: other modules hang what they own into it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from runyard.server.people import people
from runyard.server.runs import projects
from runyard.server.store.names import BadName, check_project
from runyard.server.store.sql import Row
from runyard.server.wandb_api.fields import (
    collection_fields,
    listing_fields,
    run_fields,
    sweep_fields,
)
from runyard.server.wandb_api.fields.account_fields import user_fields
from runyard.server.wandb_api.graphql.inputs import Arguments
from runyard.server.wandb_api.graphql.pages import (
    connection,
    cursor_text,
    edge,
    page,
    page_size,
    timestamp,
)
from runyard.server.wandb_api.graphql.request import Refusal, Request, Source, must_write


@dataclass(frozen=True)
class Project:
    """A project by its names; it need not exist yet."""

    entity: str
    name: str
    key: int | None = None
    created_at: float = 0.0


def queries(request: Request) -> Source:
    async def project(arguments: Arguments) -> Source | None:
        name = arguments.text("name") or arguments.text("project") or ""
        entity = request.entity(arguments)
        number = arguments.get("internalId")
        row = await (
            request.tracker.read(projects.by_path, entity, name)
            if number is None
            else request.tracker.read(projects.by_key, str(number))
        )
        if row is None or not request.may_read(row["entity"]):
            return None
        return project_fields(request, _project(row))

    async def model(arguments: Arguments) -> Source | None:
        """The older name. Here a run is about to start, maybe with its project."""
        name = arguments.text("name") or arguments.text("project") or ""
        entity = request.entity(arguments)
        if not request.may_read(entity):
            return None
        return await project(arguments) or project_fields(request, Project(entity, name))

    async def models(arguments: Arguments) -> Source:
        entity = request.entity(arguments)
        size, after = page_size(arguments), cursor_text(arguments)
        if not request.may_read(entity):
            return connection(())
        rows = await request.tracker.read(projects.of_entity, entity, after, size + 1)
        return page(
            [edge(row["name"], project_fields(request, _project(row))) for row in rows], size
        )

    return {"model": model, "project": project, "models": models}


def mutations(request: Request) -> Source:
    async def upsert_model(arguments: Arguments) -> Source:
        name = arguments.text("name") or ""
        entity = request.entity(arguments)
        try:
            check_project(name)
            check_project(entity)
        except BadName as error:
            raise Refusal(str(error)) from error
        must_write(request, entity)
        row, inserted = await request.tracker.write(projects.ensure, entity, name, time.time())
        fields = project_fields(request, _project(row))
        return {"project": fields, "model": fields, "inserted": inserted}

    return {"upsertModel": upsert_model}


def _project(row: Row) -> Project:
    return Project(row["entity"], row["name"], row["key"], row["created_at"])


def project_fields(request: Request, project: Project) -> Source:
    async def owner(_arguments: Arguments) -> Source | None:
        """Who has the project to themselves; a team's has no such person."""
        try:
            user = await request.tracker.read(people.find_user, project.entity)
        except people.Missing:
            return None
        teams = await request.tracker.read(people.teams_of, user["key"])
        return user_fields(request, user["name"], bool(user["admin"]), teams)

    return {
        "__typename": "Project",
        "id": f"{project.entity}/{project.name}",
        "name": project.name,
        "entityName": project.entity,
        "entity": {"id": project.entity, "name": project.entity},
        "internalId": project.key,
        "createdAt": timestamp(project.created_at),
        "isBenchmark": False,
        "readOnly": not request.may_write(project.entity),
        "user": owner,
        "description": None,
        "access": None,
        "views": None,
        **listing_fields.in_project(request, project.key),
        **sweep_fields.in_project(request, project.entity, project.name, project.key),
        **run_fields.in_project(request, project.entity, project.name),
        **collection_fields.in_project(request, project.entity, project.name),
    }
