"""One attempt of `runyard run`: the program runs, is recorded, and its end is told.

Beside the console's copy lies a small record of the attempt. Both go when the server has
everything; what a crash leaves behind, the server takes in by itself.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass

from runyard.errors import ProgramError
from runyard.node.attempt.console import Console
from runyard.node.attempt.foreground import Program, deaf_threads
from runyard.node.attempt.lost_teardown import LOOK_EVERY, LostTeardowns
from runyard.node.attempt.records import Record
from runyard.node.attempt.run_delivery import RunDelivery
from runyard.node.link.relay import Door
from runyard.node.system.loop import Loop
from runyard.node.system.process_trees import grown
from runyard.shapes.runs import Run


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended. `run` is None where the server could not be told yet."""

    exit_code: int
    seconds: float
    run: Run | None
    delivery_trouble: str | None
    console_trouble: OSError | None


def run_attempt(
    program: Program,
    record: Record,
    environ: Mapping[str, str],
    delivery: RunDelivery | None,
    door: Door | None = None,
) -> Outcome:
    """Run the program to its end; its output goes through us, and to the server if there is one.

    `door` is the one by which its client logs.
    """
    loop = Loop()
    console = Console(record.copy)
    stdout, stderr = console.open()
    try:
        if delivery is not None:
            record.content.update(delivery.begin(record.token))
            environ = {**environ, "RUNYARD_ATTEMPT": str(record.content["number"])}
        # Before the program: whatever becomes of us, the server then learns that we were.
        record.write()
        try:
            program.start(environ, stdout, stderr, loop)
        except ProgramError as error:
            if delivery is not None:
                delivery.cannot_begin(error.exit_code)
            raise
    except BaseException:
        console.abandon()
        record.remove()
        raise
    if door is not None:
        door.outlive_us_with(program.group)
    started = time.monotonic()
    with deaf_threads():
        console.start(program.tell_resized)
    if delivery is not None:
        delivery.watch(loop, record, program.ask_to_end)
    _watch_client(loop, program)
    exit_code = program.wait(loop)
    seconds, ended_at = time.monotonic() - started, time.time()
    record.write(exit_code=exit_code, ended_at=ended_at)
    ended = None
    with contextlib.suppress(KeyboardInterrupt):  # The user will not wait: the record stays.
        program.give_up_signals()
        console.finish()
        if delivery is not None:
            ended = delivery.finish(exit_code, ended_at)
    program.forget_grace()
    trouble = delivery.trouble if delivery is not None else None
    return Outcome(exit_code, seconds, ended, trouble, console.trouble)


def _watch_client(loop: Loop, program: Program) -> None:
    """Free a program that cannot exit."""
    lost_teardowns = LostTeardowns()

    def look() -> None:
        if program.runs:
            lost_teardowns.look(grown([program.group]))
            loop.after(LOOK_EVERY, look)

    loop.after(LOOK_EVERY, look)
