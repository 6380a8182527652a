"""A server that is reached and answers with its own trouble, again and again: a bug, a full disk.

What is asked is asked again, since most trouble passes. It is said in the log, and an agent whose
programs have all ended does not hold its job's GPUs for it to the job's end.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from runyard.node.link.channel import Channel
    from runyard.node.system.loop import Loop

# An agent that has nothing at work gives up after so long.
_PATIENCE = 300.0
_LOOK_EVERY = 2.0
# Said for the first time after so long, and then each time that it has lasted twice as long.
_FIRST_WORD = 4.0


class TroubleWatch:
    """Looks at the channels of an agent. `give_up` is called once, with what the server said."""

    def __init__(
        self,
        loop: Loop,
        channels: Iterable[Channel],
        is_at_work: Callable[[], bool],
        report: Callable[[str], None],
        give_up: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._channels = channels
        self._is_at_work = is_at_work
        self._report = report
        self._give_up = give_up
        self._patience = float(os.environ.get("RUNYARD_TROUBLE_SECONDS") or _PATIENCE)
        self._next_word = _FIRST_WORD
        self._look_later()

    def _look_later(self) -> None:
        self._loop.after(min(_LOOK_EVERY, self._patience / 2), self._look)

    def _look(self) -> None:
        troubles = [one.trouble for one in self._channels if one.trouble is not None]
        if not troubles:
            self._next_word = _FIRST_WORD
            self._look_later()
            return
        oldest = min(troubles, key=lambda trouble: trouble.since)
        lasted = time.monotonic() - oldest.since
        said = f"the server answers {oldest.path} with {oldest.status}: {oldest.error}"
        if lasted >= self._patience and not self._is_at_work():
            self._give_up(f"{said}; gave up after {lasted:.0f} s, and gives back what it had")
            return
        if lasted >= self._next_word:
            self._next_word = 2 * lasted
            self._report(f"{said}; it is asked again")
        self._look_later()
