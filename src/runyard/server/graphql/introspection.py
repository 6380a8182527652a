"""The little introspection that clients up to 0.25 do to find out what a server can."""

from __future__ import annotations

from runyard.server.graphql.executor import Source

_FIELDS = {
    "Query": ("viewer", "serverInfo", "model", "project", "entity"),
    "Mutation": ("upsertBucket", "createRunFiles"),
    "ServerInfo": ("features", "cliVersionInfo", "latestLocalVersionInfo"),
}


def describe_type(name: str | None) -> Source:
    """A type's field names. Never null: Python-generation clients end their run on a null type."""
    fields = [{"name": field, "args": []} for field in _FIELDS.get(name or "", ())]
    return {"name": name, "fields": fields, "inputFields": []}
