"""A project, as GraphQL fields: other modules hang what they own into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runyard.server.graphql import collections, runs
from runyard.server.graphql.executor import Source
from runyard.server.graphql.inputs import as_text
from runyard.server.graphql.request import Request


@dataclass(frozen=True)
class Project:
    """A project by its names; it need not exist yet."""

    entity: str
    name: str


def queries(request: Request) -> Source:
    def project(arguments: Mapping[str, Any]) -> Source | None:
        name = as_text(arguments, "name") or as_text(arguments, "project") or ""
        entity = request.entity(as_text(arguments, "entityName"))
        if not request.may_read(entity):
            return None
        return project_fields(request, Project(entity, name))

    return {"model": project, "project": project}


def project_fields(request: Request, project: Project) -> Source:
    return {
        "__typename": "Project",
        "id": f"{project.entity}/{project.name}",
        "name": project.name,
        "entityName": project.entity,
        "entity": {"id": project.entity, "name": project.entity},
        **runs.in_project(request, project.entity, project.name),
        **collections.in_project(request, project.entity, project.name),
    }
