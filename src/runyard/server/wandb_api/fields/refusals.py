"""Root fields that W&B's client knows and this server has not: each is refused by its name.

A null would be read as an answer: the client then fails in a place of its own, or takes somebody
else's name for what it wanted. A test holds this table against the client's text, and
docs/wandb-compatibility.md lists it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn

from runyard.server.wandb_api.graphql.inputs import Arguments
from runyard.server.wandb_api.graphql.request import Refusal, Source

_LAUNCH = "W&B Launch has no queues here; `runyard submit` takes jobs to Slurm"
_AUTOMATIONS = "there are no automations here"
_REGISTRIES = "there are no registries here; link versions into a collection of a project"

MUTATIONS: Mapping[str, str] = {
    "ackRunQueueItem": _LAUNCH,
    "createDefaultResourceConfig": _LAUNCH,
    "createRunQueue": _LAUNCH,
    "deleteFromRunQueue": _LAUNCH,
    "deleteRunQueues": _LAUNCH,
    "failRunQueueItem": _LAUNCH,
    "popFromRunQueue": _LAUNCH,
    "pushToRunQueue": _LAUNCH,
    "pushToRunQueueByName": _LAUNCH,
    "createLaunchAgent": _LAUNCH,
    "updateLaunchAgent": _LAUNCH,
    "updateRunQueueItemWarning": _LAUNCH,
    "upsertRunQueue": _LAUNCH,
    "createFilterTrigger": _AUTOMATIONS,
    "updateFilterTrigger": _AUTOMATIONS,
    "deleteTrigger": _AUTOMATIONS,
    "createGenericWebhookIntegration": _AUTOMATIONS,
    "createProjectMembers": _REGISTRIES,
    "deleteProjectMembers": _REGISTRIES,
    "updateProjectMember": _REGISTRIES,
    "updateProjectTeamMember": _REGISTRIES,
    "renameProject": _REGISTRIES,
    "deleteModel": "projects stay; `runyard delete` deletes runs",
    "createUser": "users have no email addresses here; the owner of the server makes them with "
    "`runyard users add`",
    "completeMultipartUploadArtifact": "files come in one piece, so there is nothing to complete",
}

QUERIES: Mapping[str, str] = {"launchAgent": _LAUNCH}


def refuse(reasons: Mapping[str, str]) -> Source:
    return {name: _refusing(name, reason) for name, reason in reasons.items()}


def _refusing(name: str, reason: str) -> Callable[[Arguments], NoReturn]:
    def resolve(_arguments: Arguments) -> NoReturn:
        raise Refusal(f"{name}: {reason}")

    return resolve
