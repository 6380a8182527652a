"""The root fields of W&B's GraphQL surface, put together from the modules that own them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from runyard.server.http.scopes import REFUSAL, RUNS_MUTATIONS
from runyard.server.people.permissions import ALL
from runyard.server.wandb_api.fields import (
    account_fields,
    agent_fields,
    alert_fields,
    artifact_fields,
    artifact_logging,
    artifact_mutations,
    chart_fields,
    collection_fields,
    entity_fields,
    project_fields,
    refusals,
    rewinding,
    run_fields,
    run_file_fields,
    run_mutations,
    sweep_mutations,
)
from runyard.server.wandb_api.fields.introspection import describe_type
from runyard.server.wandb_api.graphql.inputs import Arguments
from runyard.server.wandb_api.graphql.request import Refusal, Request, Source

_WITH_QUERIES = (account_fields, entity_fields, project_fields, artifact_fields, collection_fields)
_WITH_MUTATIONS = (
    account_fields,
    entity_fields,
    run_fields,
    run_file_fields,
    artifact_logging,
    artifact_mutations,
    rewinding,
    alert_fields,
    chart_fields,
    project_fields,
    run_mutations,
    sweep_mutations,
    agent_fields,
)

_REFUSED_QUERIES = refusals.refuse(refusals.QUERIES)
_REFUSED_MUTATIONS = refusals.refuse(refusals.MUTATIONS)


def roots(request: Request) -> dict[str, Callable[[str], Source]]:
    """What an operation starts from; made when it is known which of the two it is, and its name."""
    return {"query": partial(_query, request), "mutation": partial(_mutation, request)}


def _query(request: Request, operation: str) -> Source:
    request = replace(request, operation=operation)
    query: dict[str, object] = {
        "__typename": "Query",
        "__type": lambda arguments: describe_type(arguments.text("name")),
    }
    for module in _WITH_QUERIES:
        query |= module.queries(request)
    return {**query, **_REFUSED_QUERIES}


def _mutation(request: Request, _operation: str) -> Source:
    """Every mutation has one argument, `input`: its function gets what is in it."""

    def resolver(name: str, change: Callable[[Arguments], object]) -> Callable[[Arguments], object]:
        def resolve(arguments: Arguments) -> object:
            if request.caller.scope != ALL and name not in RUNS_MUTATIONS:
                raise Refusal(REFUSAL)
            return change(arguments.object("input"))

        return resolve

    mutation: dict[str, object] = {"__typename": "Mutation"}
    for module in _WITH_MUTATIONS:
        changes = module.mutations(request).items()
        mutation |= {name: resolver(name, change) for name, change in changes}
    return {**mutation, **_REFUSED_MUTATIONS}
