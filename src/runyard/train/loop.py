"""The training loop's `for`: it saves when that is due, and leaves in time."""

from __future__ import annotations

import time
from collections.abc import Iterator

from runyard.train import exchange
from runyard.train.checkpoints import Checkpoint
from runyard.train.pace import Pace, Phases
from runyard.train.saying import say
from runyard.train.stopping import go_on, reserve_for, told_to_stop, watch_signals


def steps(
    start: int, total: int, *checkpoints: Checkpoint, show: bool = True, phases: Phases = ()
) -> Iterator[int]:
    """Count from `start` to `total - 1`, and look after the checkpoints between the steps.

    They are saved when their time or step has come, after a best score, and at the end. When the
    time is up or somebody asked for it, they are saved and the program leaves with exit code 75.
    A step is whatever the body does once: a batch or an epoch. `show=False` keeps progress quiet.
    `phases`: where some steps take longer than others, (steps, cost of one) pairs in any unit, for
    the estimate of the time that is left.
    """
    watch_signals()
    for checkpoint in checkpoints:
        checkpoint.restore_random_states()
    if start >= total:
        where = f"; {checkpoints[0].folder} holds them" if checkpoints else ""
        say(f"all {total} steps are done already{where}")
        return
    pace = Pace(phases)
    agreement: exchange.Agreement[tuple[bool, list[bool]]] = exchange.Agreement("step")

    def wish() -> tuple[bool, list[bool]]:
        longest_save = sum(checkpoint.save_seconds for checkpoint in checkpoints)
        reserve = reserve_for(pace.longest_step(), longest_save)
        return told_to_stop(reserve), [checkpoint.time_is_due() for checkpoint in checkpoints]

    for step in range(start, total):
        yield step
        done = step + 1
        now = time.monotonic()
        pace.mark(done, now)
        if show:
            pace.tell(done, total, now)
        wishes = agreement.ask(wish)
        stop = wishes is not None and any(stopping for stopping, _ in wishes)
        for i, checkpoint in enumerate(checkpoints):
            timely = wishes is not None and wishes[0][1][i]
            if stop or timely or done == total or checkpoint.due(done):
                checkpoint.save(done)
        if stop and done < total:
            go_on(checkpoints[0].folder if checkpoints else None)
