"""The agent's loop: what happens in which order."""

from __future__ import annotations

import os
import signal

from runyard.node.system.loop import READ, Loop


def test_a_signal_is_heard_before_what_happened_in_the_same_turn() -> None:
    """Otherwise an agent that was asked to begin no more would begin one more."""
    loop, order = Loop(), []
    readable, writable = os.pipe()
    before = signal.getsignal(signal.SIGUSR1)
    try:
        loop.watch(readable, READ, lambda _events: order.append("end"))
        loop.on_signal(signal.SIGUSR1, lambda _number: order.append("signal"))
        os.write(writable, b"x")
        os.kill(os.getpid(), signal.SIGUSR1)
        loop.turn()
        assert order == ["signal", "end"]
    finally:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGUSR1, before)
        loop.close()
        os.close(readable)
        os.close(writable)
