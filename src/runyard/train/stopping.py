"""When to save and leave: the signal, the stop file, the deadline; and how to leave."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
import time
from pathlib import Path
from types import FrameType
from typing import NoReturn

from runyard import save_protocol
from runyard.schedulers.inside import this_job
from runyard.train import exchange
from runyard.train.frameworks import torch_group, wandb_run
from runyard.train.saying import say

GO_ON = save_protocol.GO_ON

_SECONDS_BETWEEN_LOOKS = 1.0
_LEAST_RESERVE = 10.0


class _Watch:
    """What this process has heard so far."""

    def __init__(self) -> None:
        self.is_signalled = False
        self.watching = False
        self._looked = -math.inf
        self._seen = False

    def start(self) -> None:
        """Take the signal, once, and keep whatever handler the program had before."""
        if self.watching or threading.current_thread() is not threading.main_thread():
            return
        before = signal.getsignal(signal.SIGUSR2)

        def hear(number: int, frame: FrameType | None) -> None:
            self.is_signalled = True
            if callable(before):
                before(number, frame)

        signal.signal(signal.SIGUSR2, hear)
        self.watching = True

    def file_is_there(self) -> bool:
        """Looks once a second at most: a thousand ranks that ask at every step would be a load."""
        name = os.environ.get("RUNYARD_STOP_FILE")
        now = time.monotonic()
        if name and not self._seen and now - self._looked >= _SECONDS_BETWEEN_LOOKS:
            self._looked = now
            self._seen = Path(name).exists()
        return self._seen


_watch = _Watch()
_agreement: exchange.Agreement[bool] | None = None


def watch_signals() -> None:
    """From now on USR2 sets a flag; before, it would end the program."""
    _watch.start()


def time_left() -> float:
    """Seconds until the job ends; infinite where nothing says when that is."""
    end: float | None = None
    with contextlib.suppress(KeyError, ValueError):
        end = float(os.environ["RUNYARD_DEADLINE"])
    if end is None or end <= 0:
        end = this_job().end
    return math.inf if end is None or end <= 0 else end - time.time()


def told_to_stop(reserve: float) -> bool:
    """Whether this process, for itself, would stop now."""
    _watch.start()
    return _watch.is_signalled or _watch.file_is_there() or time_left() < reserve


def reserve_for(step_seconds: float, save_seconds: float) -> float:
    """The time to keep for one more step and a save; both may be slower than they were."""
    return _LEAST_RESERVE + 1.5 * step_seconds + 2 * save_seconds


def should_stop(reserve: float = 3 * _LEAST_RESERVE) -> bool:
    """Whether to save and leave now. All ranks get the same answer at the same step.

    True after USR2, once the stop file is there, or with less than `reserve` seconds left. Every
    rank calls it at every step; they talk about once a second.
    """
    global _agreement
    if _agreement is None:
        _agreement = exchange.Agreement("should_stop")
    return any(_agreement.ask(lambda: told_to_stop(reserve)) or ())


def go_on(folder: str | os.PathLike[str] | None = None) -> NoReturn:
    """Leave with the exit code that means 'go on with me later'. Save first.

    `folder` is where a note of it is left, for launchers that swallow exit codes: the checkpoint
    folder by default.
    """
    where = folder or os.environ.get("RUNYARD_CHECKPOINT_DIR")
    if where and exchange.rank() == 0:
        # Without the note the exit code still says it.
        with contextlib.suppress(OSError):
            (Path(where) / save_protocol.GO_ON_NOTE).write_text(f"{time.time():.0f}\n")
    say(f"leaving with exit code {GO_ON}: start the same command again to go on")
    close(GO_ON)
    raise SystemExit(GO_ON)


def close(exit_code: int = 0) -> None:
    """Close the W&B run, then the process group: in this order, on every rank."""
    run = wandb_run()
    if run is not None:
        run.finish(exit_code=exit_code)
    group = torch_group()
    if group is not None:
        # Rank 0 may take its time to send the run's last rows; the others must not be gone then.
        exchange.gather("closing", None)
        group.destroy_process_group()
