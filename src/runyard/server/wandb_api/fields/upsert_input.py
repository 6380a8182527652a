"""What a client says of a run in `upsertBucket`, checked and translated."""

from __future__ import annotations

from runyard.server.people.permissions import Caller
from runyard.server.store.names import BadName, check_project, check_run_id
from runyard.server.tracking.upserts import Upsert
from runyard.server.wandb_api.graphql.inputs import RUN, as_json, as_key, as_list, as_text
from runyard.server.wandb_api.graphql.request import Arguments, Refusal


def read_upsert(arguments: Arguments, caller: Caller, writer: str = "") -> Upsert:
    """Check and translate the input of `upsertBucket`."""
    run_id = as_text(arguments, "name")
    entity = as_text(arguments, "entityName") or caller.name
    project = as_text(arguments, "modelName") or "uncategorized"
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
        key=as_key(arguments, "id", RUN),
        name=as_text(arguments, "displayName"),
        config=as_json(arguments, "config"),
        summary=as_json(arguments, "summaryMetrics"),
        tags=None if arguments.get("tags") is None else as_list(arguments, "tags"),
        notes=as_text(arguments, "notes"),
        group=as_text(arguments, "groupName"),
        job_type=as_text(arguments, "jobType"),
        sweep=as_text(arguments, "sweep"),
        host=as_text(arguments, "host"),
        program=as_text(arguments, "jobProgram"),
        commit_hash=as_text(arguments, "commit"),
        repo=as_text(arguments, "jobRepo"),
        state=as_text(arguments, "state"),
        writer=writer,
    )
