"""What is to travel to the nodes and back is looked at before anything is submitted."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from runyard.errors import ConfigError
from runyard.schedulers.choice import cluster

if TYPE_CHECKING:
    from runyard.config.request import Request
    from runyard.launch.plan import Places


def check_staging(request: Request, places: Places) -> None:
    """Refuse data that is not there, and whatever lies outside the project's scratch folder."""
    staging = request.staging
    if not staging.data and not staging.results:
        return
    from runyard.launch.script import project_scratch
    from runyard.node.data.staging import check_paths

    scratch = project_scratch(places, request.project_name)
    problems = check_paths(scratch, list(staging.data))
    if problems:
        raise ConfigError(
            f"{request.origin('staging.data')}: {'; '.join(problems)}",
            mend=f"data lies in {scratch}, the project's scratch folder, and is named from there",
        )
    for pattern in staging.results:
        path = PurePath(pattern)
        if path.is_absolute() or ".." in path.parts:
            raise ConfigError(
                f"{request.origin('staging.results')}: {pattern} is not in the job's folder on its "
                "node",
                mend=f"write it as it lies in {cluster().local_folder}, without that",
            )
