"""What a client says of a run in `upsertBucket`, checked and translated."""

from __future__ import annotations

from runyard.server.people.permissions import Caller
from runyard.server.store.names import BadName, check_project, check_run_id
from runyard.server.tracking.upserts import Upsert
from runyard.server.wandb_api.graphql.inputs import Arguments
from runyard.server.wandb_api.graphql.request import Refusal


def read_upsert(arguments: Arguments, caller: Caller, key: int | None, writer: str = "") -> Upsert:
    """`key` is that of the run which the argument `id` names."""
    run_id = arguments.text("name")
    entity = arguments.text("entityName") or caller.name
    project = arguments.text("modelName") or "uncategorized"
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
        key=key,
        name=arguments.text("displayName"),
        config=arguments.json("config"),
        summary=arguments.json("summaryMetrics"),
        tags=None if arguments.get("tags") is None else arguments.texts("tags"),
        notes=arguments.text("notes"),
        group=arguments.text("groupName"),
        job_type=arguments.text("jobType"),
        sweep=arguments.text("sweep"),
        host=arguments.text("host"),
        program=arguments.text("jobProgram"),
        commit_hash=arguments.text("commit"),
        repo=arguments.text("jobRepo"),
        state=arguments.text("state"),
        writer=writer,
        key_id=caller.key_id,
    )
