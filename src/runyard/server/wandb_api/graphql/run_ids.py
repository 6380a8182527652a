"""The ids of runs, and the keys behind them.

Those that we hand out hold the run's key. W&B's own scheduler makes them up from names, as W&B's
server does: `Run:v1:RUN:PROJECT:ENTITY`. Both are taken wherever a client names a run by its id.
"""

from __future__ import annotations

from runyard.server.runs import runs
from runyard.server.wandb_api.graphql.inputs import Arguments, key_of, opaque, text_of
from runyard.server.wandb_api.graphql.request import Request

_KIND = "Run"
_BY_NAMES = "v1"
_NAMES = ("run", "project", "entity")


def run_id(key: int) -> str:
    return opaque(_KIND, key)


async def run_key(request: Request, arguments: Arguments) -> int | None:
    """The key behind the argument `id`, which may be of somebody else's run.

    None if no run has the names in it.
    """
    id_ = arguments.text("id") or ""
    version, *names = text_of(_KIND, id_).split(":")
    # Neither a run's id nor the name of a project or an entity holds a colon.
    if version == _BY_NAMES and len(names) == len(_NAMES):
        run, project, entity = names
        row = await request.tracker.read(runs.by_path, entity, project, run)
        return None if row is None else int(row["key"])
    return key_of(_KIND, id_)
