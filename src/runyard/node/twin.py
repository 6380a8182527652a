"""A process forked from the agent, which then has a life of its own."""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_MOST_HANDLES = 4096


def fork_twin(work: Callable[[], None], kept: Iterable[int]) -> int:
    """Fork; the twin does the work and ends. Of what is open here it keeps these handles alone."""
    pid = os.fork()
    if pid:
        return pid
    try:
        _leave_the_agents_side(sorted(kept))
        work()
    finally:
        os._exit(0)


def _leave_the_agents_side(kept: list[int]) -> None:
    os.setsid()  # A signal to the agent's group, or Ctrl-C, is not for us.
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        # Not ignored, which whatever we start would inherit.
        signal.signal(number, lambda *_: None)
    nothing = os.open(os.devnull, os.O_RDWR)
    for handle in (0, 1, 2):  # Whoever reads the agent's output is not to wait for us.
        os.dup2(nothing, handle)
    # A connection that we held open would make the server believe that the agent lives.
    first = 3
    for handle in [*kept, _MOST_HANDLES]:
        os.closerange(first, handle)
        first = handle + 1
