"""The little introspection that clients up to 0.25 do to find out what a server can."""

from __future__ import annotations

from runyard.server.wandb_api.graphql.request import Source

_FIELDS = {
    "Query": ("viewer", "serverInfo", "model", "models", "project", "entity", "artifact"),
    "Mutation": (
        "upsertBucket",
        "upsertModel",
        "upsertSweep",
        "createAgent",
        "agentHeartbeat",
        "createRunFiles",
        "markRunFilesUploaded",
        "deleteFiles",
        "deleteRun",
        "stopRun",
        "updateRunState",
        "rewindRun",
        "notifyScriptableRunAlert",
        "createArtifact",
        "updateArtifactManifest",
    ),
    "ServerInfo": ("features", "cliVersionInfo", "latestLocalVersionInfo"),
    # Clients from 0.19 on address a run's project by these where they are known.
    "Run": ("id", "name", "projectId"),
    "Project": ("id", "name", "internalId"),
    "Artifact": (
        "id", "aliases", "tags", "historyStep", "ttlDurationSeconds", "ttlIsInherited",
        "digest", "size", "state", "files", "createdBy", "usedBy", "artifactMemberships",
    ),
}  # fmt: skip

_INPUT_FIELDS = {
    "DeleteFilesInput": ("files", "projectId"),
    # Without `uploadPartsInput`: large files come in one piece.
    "CreateArtifactFileSpecInput": ("artifactID", "name", "md5", "artifactManifestID"),
    "CreateArtifactInput": (
        "clientID", "sequenceClientID", "historyStep", "distributedID", "ttlDurationSeconds",
        "tags", "enableDigestDeduplication",
    ),
    "UseArtifactInput": ("entityName", "projectName", "runName", "artifactID", "usedAs"),
    "AddAliasesInput": ("artifactID", "aliases"),
    "LinkArtifactInput": (
        "artifactID", "clientID", "artifactPortfolioName", "entityName", "projectName", "aliases",
    ),
}  # fmt: skip


def describe_type(name: str | None) -> Source:
    """A type's field names. Never null: Python-generation clients end their run on a null type."""
    fields = [{"name": field, "args": []} for field in _FIELDS.get(name or "", ())]
    inputs = [{"name": field} for field in _INPUT_FIELDS.get(name or "", ())]
    return {"name": name, "fields": fields, "inputFields": inputs}
