"""What a client says of a run in `upsertBucket`, checked and translated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runyard.server.people.permissions import Caller
from runyard.server.store.names import BadName, check_project, check_run_id
from runyard.server.tracking.upserts import Upsert
from runyard.server.wandb_api.graphql.ids import RUN, as_key
from runyard.server.wandb_api.graphql.inputs import as_json, as_list, as_text
from runyard.server.wandb_api.graphql.source import Refusal


def read_upsert(given: Mapping[str, Any], caller: Caller, writer: str = "") -> Upsert:
    """Check and translate the input of `upsertBucket`."""
    run_id = as_text(given, "name")
    entity = as_text(given, "entityName") or caller.name
    project = as_text(given, "modelName") or "uncategorized"
    try:
        check_project(project)
        check_project(entity)
        if run_id is not None:
            check_run_id(run_id)
    except BadName as error:
        raise Refusal(str(error)) from error
    return Upsert(
        id=run_id,
        entity=entity,
        project=project,
        user=caller.key,
        key=as_key(given, "id", RUN),
        name=as_text(given, "displayName"),
        config=as_json(given, "config"),
        summary=as_json(given, "summaryMetrics"),
        tags=None if given.get("tags") is None else as_list(given, "tags"),
        notes=as_text(given, "notes"),
        group=as_text(given, "groupName"),
        job_type=as_text(given, "jobType"),
        sweep=as_text(given, "sweep"),
        host=as_text(given, "host"),
        program=as_text(given, "jobProgram"),
        commit_hash=as_text(given, "commit"),
        repo=as_text(given, "jobRepo"),
        state=as_text(given, "state"),
        writer=writer,
    )
