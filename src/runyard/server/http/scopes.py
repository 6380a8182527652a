"""Which GraphQL mutations a key for runs opens; for routes see `Endpoint.scope` in `routes.py`.

Such keys are in the environment of programs (`people/api_keys.py`), and may fall into other hands.
They log and read their owner's runs. A new mutation is closed to them until it is put into one of
the two lists, which a test demands.
"""

from __future__ import annotations

REFUSAL = (
    "this needs your own key: the one in the environment of shells, runs and jobs is for logging "
    "and reading runs; commands like `runyard users keys` use your own"
)

RUNS_MUTATIONS: frozenset[str] = frozenset(
    {
        "upsertBucket",
        "upsertModel",
        "createRunFiles",
        "deleteFiles",
        "markRunFilesUploaded",
        "rewindRun",
        "notifyScriptableRunAlert",
        "deleteRun",
        "stopRun",
        "updateRunState",
        "commitArtifact",
        "createArtifact",
        "createArtifactFiles",
        "createArtifactManifest",
        "createArtifactType",
        "updateArtifactManifest",
        "useArtifact",
        "addAliases",
        "deleteAliases",
        "createArtifactCollectionTagAssignments",
        "deleteArtifactCollectionTagAssignments",
        "deleteArtifact",
        "deleteArtifactPortfolio",
        "deleteArtifactSequence",
        "linkArtifact",
        "unlinkArtifact",
        "moveArtifactSequence",
        "updateArtifact",
        "updateArtifactPortfolio",
        "updateArtifactSequence",
        # Except what would let agents run another program (`wandb_api/fields/sweep_mutations.py`).
        "upsertSweep",
        "enqueueSweepRun",
        "createCustomChart",
        "createAgent",
        "agentHeartbeat",
    }
)

WHOLE_MUTATIONS: frozenset[str] = frozenset(
    {
        "generateApiKey",
        "deleteApiKey",
        "createTeam",
        "createInvite",
        "deleteInvite",
        "createServiceAccount",
    }
)
