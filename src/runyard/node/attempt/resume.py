"""Before a trial goes on: the server is told of the checkpoint from which it does.

Rows that were logged after the checkpoint come again, so they are put aside; rows that a hard death
kept from being sent are read from the client's own file and brought in first.
"""

from __future__ import annotations

import contextlib
import os
import signal

from runyard.node.attempt.checkpoints import chosen_at, is_used, manifests, saved_at
from runyard.node.system.loop import READ
from runyard.node.system.processes import fork_twin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from runyard.node.attempt.workspace import Workspace
    from runyard.node.link.channel import Answer, Channel
    from runyard.node.system.loop import Loop

# To read what the program reads again. After that the newest checkpoint is taken to be whole.
_VERIFY_SECONDS = 30.0


def find_checkpoint(
    loop: Loop, helpers: set[int], folder: str, then: Callable[[float | None], None]
) -> None:
    """Call with when the checkpoint was made that the program will take.

    `helpers`: child processes that the agent waits for.
    """
    of_train = manifests(folder)
    if not of_train:
        then(saved_at(folder))
        return
    heard, held = os.pipe()
    twin = fork_twin(lambda: _tell(of_train, held), (held,))
    helpers.add(twin)
    os.close(held)

    def is_late() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(twin, signal.SIGKILL)
        take(b"")

    def take(told: bytes) -> None:
        loop.forget(heard)
        os.close(heard)
        timer.cancel()
        if told:
            then(None if told == b"none" else float(told))
        else:
            then(saved_at(folder))

    timer = loop.after(_VERIFY_SECONDS, is_late)
    loop.watch(heard, READ, lambda _events: take(os.read(heard, 100)))


def _tell(manifest_files: list[str], held: int) -> None:
    chosen = chosen_at(manifest_files)
    os.write(held, b"none" if chosen is None else repr(chosen).encode())


def go_back(
    channel: Channel,
    agent: str,
    claim: dict[str, Any],
    workspace: Workspace,
    saved: float | None,
    then: Callable[[], None],
) -> None:
    """Have the run's history end where the checkpoint of that time is, then call."""
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
