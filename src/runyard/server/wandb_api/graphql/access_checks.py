"""Runs, artifacts and collections for those who may have them; to others they do not exist."""

from __future__ import annotations

from runyard.server.artifacts import visibility
from runyard.server.store.sql import Row
from runyard.server.wandb_api.graphql.request import Request
from runyard.server.wandb_api.graphql.source import Refusal


async def own_run(request: Request, key: int) -> Row:
    """A run that the caller may change."""
    row = await request.see(visibility.run, key)
    if row is None:
        raise Refusal("there is no such run any more")
    must_write(request, row["entity"])
    return row


async def readable_artifact(request: Request, key: int | None) -> Row:
    row = await request.see(visibility.artifact, key)
    if row is None:
        raise Refusal("there is no such artifact any more")
    return row


async def own_artifact(request: Request, key: int | None) -> Row:
    """An artifact that the caller may change."""
    row = await readable_artifact(request, key)
    must_write(request, row["entity"])
    return row


async def own_collection(request: Request, key: int | None) -> Row:
    row = await request.see(visibility.collection, key)
    if row is None:
        raise Refusal("there is no such collection any more")
    must_write(request, row["entity"])
    return row


def must_write(request: Request, entity: str) -> None:
    if not request.may_write(entity):
        raise Refusal(f"{request.caller.name!r} may not change what belongs to {entity!r}")
