"""Before a trial goes on: the server is told of the checkpoint from which it does.

Rows that were logged after the checkpoint come again, so they are put aside; rows that a hard death
kept from being sent are read from the client's own file and brought in first.
"""

from __future__ import annotations

from runyard.node.attempt.checkpoints import is_used, saved_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from runyard.node.attempt.workspace import Workspace
    from runyard.node.link.channel import Answer, Channel


def go_back(
    channel: Channel,
    agent: str,
    claim: dict[str, Any],
    workspace: Workspace,
    then: Callable[[], None],
) -> None:
    """Have the run's history end where its newest checkpoint is, then call."""
    saved = saved_at(workspace.checkpoints)
    if saved is None and not is_used(workspace.checkpoints):
        # Where a program never saved anything that we can see, it may do so elsewhere.
        then()
        return
    path = f"/api/agents/{agent}/rewind"
    message = {
        "trial": claim["trial"]["number"],
        "attempt": claim["attempt"],
        "saved_at": saved,
    }

    def is_back(answer: Answer) -> None:
        owed = answer.json().get("owed_since") if answer.is_good else None
        lines = [] if owed is None or saved is None else _owed_rows(workspace, owed)
        if lines:
            channel.post(path, {**message, "rows": lines}, lambda _answer: then())
        else:
            then()

    channel.post(path, message, is_back)


def _owed_rows(workspace: Workspace, since: float) -> list[str]:
    """Later than the checkpoint too: who saves a step before logging it does not log it again."""
    from runyard.node.attempt.wandb_file import rows_after  # Only where something is missing.

    return rows_after(workspace.wandb_folder, workspace.run_id, since)
