"""The agent's twin, for the case that the agent is killed with -9.

It holds the reading end of a pipe whose writing end only the agent has. Every attempt is announced
there before its program begins, so when the pipe ends, the twin knows what is left to end. It also
ends what the agents of an earlier crash left behind, and tells the server of it all.
"""

from __future__ import annotations

import contextlib
import os
import signal

from runyard.node.system import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_GRACE_SECONDS = 5.0


class Keeper:
    """The agent's side of it. Lines through the pipe: what began, what ended, and farewell."""

    def __init__(self, pid: int, pipe: int) -> None:
        self.pid = pid
        self.identity = {"keeper": pid, "keeper_began": processes.start_time(pid)}
        self._pipe = pipe

    def begins(self, token: str) -> None:
        """An attempt with this mark is about to begin.

        Said before: whatever becomes of us in between, the keeper knows what to look for. The new
        process holds the pipe until its program begins, and carries the mark from then on.
        """
        self._tell(f"?{token}")

    def began(self, group: int, token: str) -> None:
        self._tell(f"+{token} {group}")

    def ended(self, token: str) -> None:
        self._tell(f"-{token}")

    def _tell(self, line: str) -> None:
        with contextlib.suppress(OSError):  # It was killed; the agent makes another.
            os.write(self._pipe, f"{line}\n".encode())

    def dismiss(self) -> None:
        """The agent ends as it should."""
        os.close(self._pipe)


def start_keeper(
    spool: str, tell: Callable[[str], None], also_held: tuple[int, ...] = ()
) -> Keeper:
    """Fork the twin. `tell` delivers what the attempts' records in the spool say.

    `also_held`: what stays open for as long as a program of the agent's may live.
    """
    heard, written = os.pipe()
    pid = processes.fork_twin(lambda: _keep(heard, spool, tell), (heard, *also_held))
    os.close(heard)
    return Keeper(pid, written)


def _keep(heard: int, spool: str, tell: Callable[[str], None]) -> None:
    if end_orphans(spool):
        tell(spool)
    groups: dict[str, tuple[int, str | None] | None] = {}
    with os.fdopen(heard, "rb") as lines:
        for line in lines:
            token, _, number = line[1:].decode().strip().partition(" ")
            if line.startswith(b"?"):
                groups[token] = None
            elif line.startswith(b"+"):
                groups[token] = (int(number), processes.start_time(int(number)))
            else:
                groups.pop(token, None)
    if groups:
        from runyard.node.attempt.client_finish import end_programs  # When it is needed.

        began = dict(group for group in groups.values() if group is not None)
        left = [pid for pid, start in began.items() if processes.start_time(pid) in (None, start)]
        end_programs(left, [*groups], signal.SIGTERM)
        processes.end_groups(began, groups, _GRACE_SECONDS)
    tell(spool)


def end_orphans(spool: str) -> bool:
    """End attempts whose agent and keeper both died. Says whether there is anything to tell."""
    from runyard.node.attempt import records  # In the keeper's own process.

    contents = [record.content for record in records.read_all(spool)]
    left = [content for content in contents if records.is_orphan(content)]
    groups = {
        content["group"]: content.get("group_began")
        for content in left
        if content.get("group") and content.get("boot") == processes.boot_id()
    }
    if groups:
        tokens = [content["token"] for content in left]
        processes.end_groups(groups, tokens, _GRACE_SECONDS)
    return bool(left)
