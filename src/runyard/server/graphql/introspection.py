"""The little introspection that clients up to 0.25 do to find out what a server can."""

from __future__ import annotations

from runyard.server.graphql.executor import Source

_FIELDS = {
    "Query": ("viewer", "serverInfo", "model", "models", "project", "entity"),
    "Mutation": (
        "upsertBucket",
        "upsertModel",
        "createRunFiles",
        "markRunFilesUploaded",
        "deleteFiles",
        "deleteRun",
        "stopRun",
        "updateRunState",
    ),
    "ServerInfo": ("features", "cliVersionInfo", "latestLocalVersionInfo"),
    # Clients from 0.19 on address a run's project by these where they are known.
    "Run": ("id", "name", "projectId"),
    "Project": ("id", "name", "internalId"),
}
_INPUTS = {
    "DeleteFilesInput": ("files", "projectId"),
}


def describe_type(name: str | None) -> Source:
    """A type's field names. Never null: Python-generation clients end their run on a null type."""
    fields = [{"name": field, "args": []} for field in _FIELDS.get(name or "", ())]
    return {
        "name": name,
        "fields": fields,
        "inputFields": [{"name": field} for field in _INPUTS.get(name or "", ())],
    }
