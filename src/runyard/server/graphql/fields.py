"""The root fields of W&B's GraphQL surface, put together from the modules that own them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from runyard.server.graphql import (
    account,
    agents,
    alerts,
    artifact_changes,
    artifact_logging,
    artifacts,
    branches,
    collections,
    entities,
    projects,
    run_files,
    runs,
    sweep_changes,
    writes,
)
from runyard.server.graphql.executor import Refusal, Source
from runyard.server.graphql.inputs import as_text
from runyard.server.graphql.introspection import describe_type
from runyard.server.graphql.request import Request
from runyard.server.permissions import ALL
from runyard.server.scopes import REFUSAL, RUNS_MUTATIONS

_WITH_QUERIES = (account, entities, projects, artifacts, collections)
_WITH_MUTATIONS = (
    account,
    entities,
    runs,
    run_files,
    artifact_logging,
    artifact_changes,
    branches,
    alerts,
    projects,
    writes,
    sweep_changes,
    agents,
)


def roots(request: Request) -> dict[str, Callable[[], Source]]:
    """What a request's operation starts from; made when it is known which of the two it is."""
    return {"query": partial(_query, request), "mutation": partial(_mutation, request)}


def _query(request: Request) -> Source:
    query: dict[str, object] = {
        "__typename": "Query",
        "__type": lambda arguments: describe_type(as_text(arguments, "name")),
    }
    for module in _WITH_QUERIES:
        query |= module.queries(request)
    return query


def _mutation(request: Request) -> Source:
    mutation: dict[str, object] = {"__typename": "Mutation"}
    for owner in _WITH_MUTATIONS:
        mutation |= owner.mutations(request)
    if request.caller.scope != ALL:
        for name in mutation.keys() - RUNS_MUTATIONS - {"__typename"}:
            mutation[name] = _refuse
    return mutation


def _refuse(_arguments: object) -> Source:
    raise Refusal(REFUSAL)
