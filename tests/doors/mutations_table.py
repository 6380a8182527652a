"""Every mutation of the GraphQL API: what it changes, and inputs that do it.

A mutation that is not here fails `test_every_mutation.py`. Inputs are made of what people in the
world have (`$name`, see `world.furnish`), of one person's alone and of two persons' mixed.
"""

# ruff: noqa: E501  (a row a door)
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Input = Mapping[str, Any]
_PLACE: Input = {"entityName": "$entity", "projectName": "$project"}
_RUN: Input = {**_PLACE, "runName": "$run_id"}
_NEW_SWEEP = '{"method": "random", "parameters": {"x": {"values": [1, 2]}}}'
_PRIOR = '{"$or": [{"name": "$run_id"}]}'
_FORK = '{"_wandb": {"value": {"branch_point": {"run_id": "$run_id", "step": 1}}}}'


@dataclass(frozen=True)
class Mutation:
    """`changes` is whose things it may change; `ends` says that it removes what it is given."""

    changes: str
    inputs: Sequence[Input]
    ends: bool = False
    # Values that are nobody's to refuse, such as whom a member invites.
    free: tuple[str, ...] = ()
    # Why an answer may tell that a name is taken.
    tells: str = ""


OWN = "the caller's own"
ENTITY = "what belongs to an entity that the caller may write to"
TEAM = "a team that the caller is in"


def _alias(collection: str) -> Input:
    name = {**_PLACE, "artifactCollectionName": collection, "alias": "moved"}
    return {"artifactID": "$artifact_gid", "aliases": [name]}


_TAGS: Input = {**_PLACE, "artifactCollectionName": "$collection", "tags": [{"tagName": "new"}]}
MUTATIONS: Mapping[str, Mutation] = {
    "generateApiKey": Mutation(OWN, [{"description": "another"}]),
    "deleteApiKey": Mutation(OWN, [{"id": "$key_gid"}], ends=True),
    "createTeam": Mutation(
        TEAM,
        [{"teamName": "$team"}, {"teamName": "of-$project", "teamAdminUserName": "$user"}],
        free=("project",),
        tells="names of teams are unique over the server",
    ),
    "createInvite": Mutation(TEAM, [{"entityName": "$team", "username": "$user"}], free=("user",)),
    "deleteInvite": Mutation(TEAM, [{"entityName": "$team", "id": "$member_gid"}], ends=True),
    "createServiceAccount": Mutation(TEAM, [{"entityName": "$team", "description": "a CI"}]),
    "createCustomChart": Mutation(ENTITY, [{"entity": "$entity", "name": "bars", "displayName": "Bars", "type": "vega2", "access": "PRIVATE", "spec": "{}"}]),
    "upsertModel": Mutation(ENTITY, [{"entityName": "$entity", "name": "$project"}]),
    "upsertBucket": Mutation(
        ENTITY,
        [
            {"id": "$run_gid", "entityName": "$entity", "modelName": "$project", "notes": "changed"},
            {"id": "$run_v1_gid", "entityName": "$entity", "modelName": "$project", "notes": "changed"},
            {"id": "$run_v1_gid", "notes": "changed"},
            {"name": "$run_id", "entityName": "$entity", "modelName": "$project", "notes": "changed"},
            {"name": "forked", "entityName": "$entity", "modelName": "$project", "config": _FORK},
            {"name": "of-sweep", "entityName": "$entity", "modelName": "$project", "sweep": "$sweep_id"},
        ],
    ),
    "createRunFiles": Mutation(ENTITY, [{**_RUN, "files": ["$file"]}]),
    "markRunFilesUploaded": Mutation(ENTITY, [{**_RUN, "files": ["$file"]}]),
    "deleteFiles": Mutation(ENTITY, [{"files": ["$file_gid"]}], ends=True),
    "deleteRun": Mutation(ENTITY, [{"id": "$run_gid", "deleteArtifacts": True}, {"id": "$run_v1_gid"}], ends=True),
    "stopRun": Mutation(ENTITY, [{"id": "$run_gid"}, {"id": "$run_v1_gid"}]),
    "updateRunState": Mutation(
        ENTITY,
        [{"id": "$run_gid", "state": "failed"}, {"id": "$run_v1_gid", "state": "failed"}],
    ),
    "rewindRun": Mutation(ENTITY, [{**_RUN, "metricName": "_step", "metricValue": 0}]),
    "notifyScriptableRunAlert": Mutation(ENTITY, [{**_RUN, "title": "new", "text": "new"}]),
    # Before an artifact is made with an id that a client chose.
    "linkArtifact": Mutation(
        ENTITY,
        [
            {**_PLACE, "artifactID": "$artifact_gid", "artifactPortfolioName": "$portfolio"},
            {**_PLACE, "artifactID": "$artifact_gid", "artifactPortfolioName": "fresh"},
            {**_PLACE, "clientID": "$client_id", "artifactPortfolioName": "also-fresh"},
        ],
    ),
    "createArtifact": Mutation(
        ENTITY,
        [
            {
                **_RUN, "artifactCollectionName": "$collection", "artifactTypeName": "$type",
                "digest": "$digest", "clientID": "$client_id", "aliases": [{"alias": "moved"}],
            },
            {
                **_RUN, "artifactCollectionName": "new", "artifactTypeName": "new",
                "digest": "new", "clientID": "$client_id", "distributedID": "new",
            },
        ],
    ),
    "createArtifactType": Mutation(OWN, [{**_PLACE, "name": "$type"}]),
    "createArtifactManifest": Mutation(
        ENTITY,
        [
            {"artifactID": "$artifact_gid", "type": "INCREMENTAL", "digest": "new",
             "baseArtifactID": "$lent_gid"},
        ],
    ),
    "updateArtifactManifest": Mutation(
        ENTITY, [{"artifactManifestID": "$manifest_gid", "baseArtifactID": "$artifact_gid"}]
    ),
    "createArtifactFiles": Mutation(
        ENTITY, [{"artifactFiles": [{"artifactID": "$artifact_gid", "name": "new", "md5": "$md5"}]}]
    ),
    "commitArtifact": Mutation(ENTITY, [{"artifactID": "$artifact_gid"}]),
    "useArtifact": Mutation(
        ENTITY, [{**_RUN, "artifactID": "$artifact_gid"}, {"artifactID": "$neighbour_gid"}]
    ),
    "updateArtifact": Mutation(
        ENTITY,
        [{"artifactID": "$artifact_gid", "description": "new", "aliases": [{"alias": "moved"}]}],
    ),
    "addAliases": Mutation(ENTITY, [_alias("$collection"), _alias("$portfolio")]),
    "deleteAliases": Mutation(
        ENTITY,
        [
            {"artifactID": "$artifact_gid",
             "aliases": [{**_PLACE, "artifactCollectionName": name, "alias": "latest"}]}
            for name in ("$collection", "$portfolio")
        ],
    ),
    "unlinkArtifact": Mutation(
        ENTITY, [{"artifactID": "$artifact_gid", "artifactPortfolioID": "$portfolio_gid"}]
    ),
    "updateArtifactSequence": Mutation(
        ENTITY, [{"artifactSequenceID": "$collection_gid", "description": "new"}]
    ),
    "updateArtifactPortfolio": Mutation(
        ENTITY, [{"artifactPortfolioID": "$portfolio_gid", "description": "new"}]
    ),
    "moveArtifactSequence": Mutation(
        ENTITY, [{"artifactSequenceID": "$collection_gid", "destinationArtifactTypeName": "new"}]
    ),
    "createArtifactCollectionTagAssignments": Mutation(ENTITY, [_TAGS]),
    "deleteArtifactCollectionTagAssignments": Mutation(ENTITY, [_TAGS]),
    "deleteArtifact": Mutation(
        ENTITY, [{"artifactID": "$artifact_gid", "deleteAliases": True}], ends=True
    ),
    "deleteArtifactSequence": Mutation(
        ENTITY, [{"artifactSequenceID": "$collection_gid"}], ends=True
    ),
    "deleteArtifactPortfolio": Mutation(
        ENTITY, [{"artifactPortfolioID": "$portfolio_gid"}], ends=True
    ),
    "upsertSweep": Mutation(
        ENTITY,
        [
            {"id": "$sweep_gid", "state": "PAUSED"},
            {**_PLACE, "config": _NEW_SWEEP, "priorRunsFilters": _PRIOR},
        ],
    ),
    "enqueueSweepRun": Mutation(ENTITY, [{"id": "$suggested_gid", "config": '{"x": {"value": 1}}'}]),
    "createAgent": Mutation(ENTITY, [{**_PLACE, "sweep": "$sweep_id", "host": "node9"}]),
    "agentHeartbeat": Mutation(ENTITY, [{"id": "$stock_gid", "runState": "{}"}]),
}  # fmt: skip
