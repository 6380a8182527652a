"""Files that belong to a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runyard.server.graphql.executor import Refusal, Source
from runyard.server.graphql.inputs import as_list, as_object, as_text
from runyard.server.graphql.request import Request
from runyard.server.store import runs
from runyard.server.uploads import UnsafeName, check_name


def mutations(request: Request) -> Source:
    async def create_run_files(arguments: Mapping[str, Any]) -> Source:
        given = as_object(arguments, "input")
        entity = request.entity(as_text(given, "entityName"))
        project, run = as_text(given, "projectName") or "", as_text(given, "runName") or ""
        row = await request.tracker.read(runs.by_path, entity, project, run)
        if row is None or not request.may_write(entity):
            raise Refusal(f"no run {run} in {entity}/{project}")
        files = []
        for name in as_list(given, "files"):
            try:
                check_name(name)
            except UnsafeName as error:
                raise Refusal(str(error)) from error
            url = request.tracker.uploads.url(request.base_url, row["key"], name)
            files.append({"name": name, "uploadUrl": url})
        return {"runID": str(row["key"]), "uploadHeaders": [], "files": files}

    return {"createRunFiles": create_run_files}
