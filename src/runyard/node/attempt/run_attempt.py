"""One attempt: the program runs, is recorded, and its end is told.

Beside the console's copy lies a small record of the attempt. Both go when the server has
everything; what a crash leaves behind, the server takes in by itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from runyard.client.api import Api, Run
from runyard.errors import ProgramError, RunyardError
from runyard.home import write_whole
from runyard.node.attempt.console import Console
from runyard.node.attempt.foreground import Program, deaf_threads
from runyard.node.attempt.shipping import Shipper
from runyard.node.link.relay import Door

_DELIVERY_SECONDS = 30.0


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended. `run` is None where the server could not be told yet."""

    exit_code: int
    seconds: float
    run: Run | None
    delivery_trouble: RunyardError | None
    console_trouble: OSError | None


def run_attempt(
    program: Program,
    api: Api,
    run: Run,
    spool: Path,
    environment: Mapping[str, str],
    revive: Callable[[], Api | None],
    door: Door | None = None,
) -> Outcome:
    """Run the program to its end; its output goes through us, and to the server.

    `door` is the one by which its client logs.
    """
    token = secrets.token_hex(4)
    copy, record = spool / f"{run['id']}-{token}.log", spool / f"{run['id']}-{token}.json"
    console = Console(copy)
    stdout, stderr = console.open()
    host = socket.gethostname()
    try:
        number = api.begin_attempt(run, host, os.getpid(), token)
        known = {"run": run["key"], "number": number, "host": host, "pid": os.getpid()}
        # Before the program: whatever becomes of us, the server then learns that we were.
        _write_record(record, known)
        try:
            program.start({**environment, "RUNYARD_ATTEMPT": str(number)}, stdout, stderr)
        except ProgramError as error:
            api.end_attempt(run, number, error.exit_code, time.time())
            raise
    except BaseException:
        console.abandon()
        record.unlink(missing_ok=True)
        raise
    if door is not None:
        door.outlive_us_with(program.group)
    started = time.monotonic()
    shipper = Shipper(api, run, number, copy, revive, program.ask_to_end)
    with deaf_threads():
        console.start(program.tell_resized)
        shipper.start()
    exit_code = program.wait()
    seconds, ended_at = time.monotonic() - started, time.time()
    _write_record(record, {**known, "exit_code": exit_code, "ended_at": ended_at})
    ended = None
    with contextlib.suppress(KeyboardInterrupt):  # The user will not wait: the record stays.
        program.give_up_signals()
        console.finish()
        ended = shipper.finish(exit_code, ended_at, _DELIVERY_SECONDS)
    program.forget_grace()
    if ended is not None:
        record.unlink(missing_ok=True)
        copy.unlink(missing_ok=True)
    return Outcome(exit_code, seconds, ended, shipper.trouble, console.trouble)


def _write_record(path: Path, content: Mapping[str, object]) -> None:
    # A full disk must not end the program; the server is then told directly or not at all.
    with contextlib.suppress(OSError):
        write_whole(path, json.dumps(content))
