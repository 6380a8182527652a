"""Every field of the GraphQL API, classified, and the arguments with which the machine tries it.

A type or a field that is not here fails `test_every_field.py`. To add one: decide who may read it,
put its name into the row of its type, and, if it takes arguments, into `ARGUMENTS`. A `$name` stands
for what somebody in the world has under that name (`world.furnish`).
"""

# ruff: noqa: E501  (a row a door)
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# Who may read an object's fields.
OPEN = "everybody with a key"
READERS = "who may read its entity"
LENT = "who may read its entity, or one whose collection it is linked to"
SELF = "the user, and by name who shares a team; keys: the user and the admin"

_PAGE, _EDGE = "edges pageInfo totalCount", "cursor node"
# Lists have no class of their own: what they hold has.
LIST_SHAPES = frozenset({_PAGE, _EDGE, f"{_EDGE} version"})

_LOOKUPS = "artifact artifactCollection artifactCollections artifactPortfolio artifactSequence artifactSequences"
_COLLECTION = (
    "aliases artifactMembership artifacts createdAt defaultArtifactType description "
    "digestAlgorithm id latestArtifact name project state tags updatedAt"
)
TYPES: Mapping[str, tuple[str, str]] = {
    "Query": (OPEN, "__type artifact artifactCollection clientIDMapping entity launchAgent model models "
              "organization project serverInfo users viewer"),
    "Query.__type": (OPEN, "fields inputFields name"),
    "Query.__type.fields": (OPEN, "args name"),
    "Query.__type.inputFields": (OPEN, "name"),
    "Query.serverInfo": (OPEN, "cliVersionInfo features latestLocalVersionInfo"),
    "Query.serverInfo.features": (OPEN, "isEnabled name"),
    "Query.serverInfo.cliVersionInfo": (OPEN, "max_cli_version min_cli_version"),
    "PageInfo": (OPEN, "endCursor hasNextPage"),
    "User": (SELF, "accountType admin apiKeys deletedAt email entity flags id name photoUrl teams username"),
    "User.teams.edges.node": (SELF, "id name"),
    "ApiKey": (SELF, "description id name"),
    "Entity": (READERS, "available codeSavingEnabled defaultAccess entityType id isPaid isTeam members "
               "name organization photoUrl privateOnly readOnly readOnlyAdmin storageBytes limits"),
    "Member": (READERS, "accountType admin apiKey email id name pending photoUrl username"),
    "Project": (READERS, f"access {_LOOKUPS} artifactCollectionMembership artifactType artifactTypes "
                "bucket createdAt description entity entityName id internalId isBenchmark name readOnly "
                "run runCount runs sweep sweeps totalSweeps user views"),
    "Project.entity": (READERS, "id name"),
    "Run": (READERS, "commit config createdAt description displayName events eventsLineCount eventsTail "
            "exitcode failed fileCount files group heartbeatAt history historyKeys historyLineCount "
            "historyTail host id inputArtifacts jobType logLineCount logLines name notes "
            "outputArtifacts parquetHistory project projectId readOnly running sampledHistory "
            "shouldStop state stopped summaryMetrics sweepName systemMetrics tags user wandbConfig"),
    "Run.user": (READERS, "name username"),
    "Run.logLines.edges.node": (READERS, "label level line number timestamp"),
    "Run.parquetHistory": (READERS, "liveData parquetUrls"),
    "Run.parquetHistory.liveData": (READERS, "_step"),
    "Sweep": (READERS, "agent agents bestLoss config controller controllerRunName createdAt description displayName "
              "earlyStopJobRunning heartbeatAt id method name priorRuns project runCount runCountExpected "
              "runs scheduler state updatedAt"),
    "Agent": (READERS, "createdAt heartbeatAt host id name runs state totalRuns"),
    "ArtifactSequence": (READERS, _COLLECTION),
    "ArtifactPortfolio": (READERS, _COLLECTION),
    "ArtifactType": (READERS, f"{_LOOKUPS} createdAt description id name"),
    "Artifact": (LENT, "aliases artifactMemberships artifactSequence artifactType commitHash createdAt "
                 "createdBy currentManifest description digest digestAlgorithm fileCount files "
                 "filesByManifestEntries historyStep id labels metadata size state storageBytes tags "
                 "ttlDurationSeconds ttlIsInherited updatedAt usedBy versionIndex"),
    "Artifact.currentManifest": (LENT, "file id"),
    "ArtifactAlias": (READERS, "alias artifactCollection id"),
    "ArtifactCollectionMembership": (READERS, "aliases artifact artifactCollection createdAt files id "
                                     "versionIndex"),
    "File": (LENT, "artifact digest directUrl displayName id md5 mimetype name sizeBytes storagePath "
             "updatedAt uploadHeaders uploadMultipartUrls uploadUrl url"),
    "Tag": (LENT, "id name tagCategoryName"),
    "Query.clientIDMapping": (LENT, "serverID"),
    "ArtifactManifest": (READERS, "file id"),
}  # fmt: skip

_CREATED = [{"name": "$collection"}, {"name": "$portfolio"}]
ARGUMENTS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "Query.users": [{}, {"query": "$user"}],
    "Query.entity": [{}, {"name": "$entity"}, {"name": "$team"}],
    "Query.project": [
        {"entityName": "$entity", "name": "$project"},
        {"entityName": "$entity", "project": "$project"},
        {"name": "$project"},
        {"internalId": "$project_number"},
    ],
    "Query.model": [
        {"entityName": "$entity", "name": "$project"},
        {"entityName": "$entity", "project": "$project"},
        {"internalId": "$project_number"},
    ],
    "Query.models": [{}, {"entityName": "$entity"}],
    "Query.artifact": [{"id": "$artifact_gid"}, {"id": "$lent_gid"}, {"id": "$neighbour_gid"}],
    "Query.artifactCollection": [{"id": "$collection_gid"}, {"id": "$portfolio_gid"}],
    "Query.clientIDMapping": [{"clientID": "$client_id"}],
    "Query.__type": [{"name": "Run"}, {"name": "DeleteFilesInput"}],
    "Project.run": [{"name": "$run_id"}],
    "Project.bucket": [{"name": "$run_id"}],
    "Project.runs": [
        {},
        {"filters": '{"display_name": "$run_name"}'},
        {"filters": '{"tags": "$tag"}'},
    ],
    "Project.runCount": [{}, {"filters": '{"display_name": "$run_name"}'}],
    "Project.sweep": [{"name": "$sweep_id"}, {"sweepName": "$sweep_id"}],
    "Project.artifactType": [{"name": "$type"}],
    "Project.artifactCollectionMembership": [
        {"name": "$collection"},
        {"name": "$portfolio:v0"},
        {"name": "$collection:$digest"},
    ],
    **{
        f"{kind}.artifact": [{"name": "$collection:$alias"}, {"name": "$collection:$digest"}]
        for kind in ("Project", "ArtifactType")
    },
    **{
        f"{kind}.artifact{what}": _CREATED
        for kind in ("Project", "ArtifactType")
        for what in ("Collection", "Sequence", "Portfolio")
    },
    **{
        f"{kind}.artifactMembership": [{}, {"aliasName": "$alias"}]
        for kind in ("ArtifactSequence", "ArtifactPortfolio")
    },
    "Run.sampledHistory": [{"specs": ['{"keys": ["$metric"]}']}],
    "Run.wandbConfig": [{"keys": ["t"]}],
    "Run.files": [{}, {"names": ["$file"]}],
    "Sweep.agent": [{"agentName": "$stock_gid"}],
    "File.url": [{}, {"upload": True}],
}
# Arguments that choose a part of what the field shows anyway.
PAGING = frozenset(
    {
        "first",
        "after",
        "last",
        "order",
        "samples",
        "minStep",
        "maxStep",
        "filters",
        "names",
        "pattern",
    }
)
