"""A few settings, spread over a sweep's space, tried here before anything is made.

Each runs for a few steps or seconds, with wandb offline in a folder that is thrown away: no sweep
and no run comes of it.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.cli.output import console, duration, print_json
from runyard.cli.sweep_plan import Plan
from runyard.node.commands import expand
from runyard.node.parameters import parameter_file
from runyard.node.wandb_file import read_rows
from runyard.search.grid import point_at
from runyard.search.names import trial_name
from runyard.server.sweeps.drawing import quasi_random

ENOUGH_STEPS = 3
_LOOK_EVERY = 0.2
_GRACE_SECONDS = 5.0
_LAST_LINES = 12


@dataclass(frozen=True)
class Tried:
    """How one setting went."""

    name: str
    values: dict[str, Any]
    is_good: bool
    how: str
    seconds: float
    # The last lines that it printed, where it failed.
    said: str = ""


def rehearse(plan: Plan, count: int, seconds: float, *, as_json: bool) -> int:
    """Try them one after the other; 1 where one failed."""
    tried = []
    for name, values in settings_of(plan, count):
        one = _try(plan, name, values, seconds)
        tried.append(one)
        if not as_json:
            _print(one)
    failed = sum(not one.is_good for one in tried)
    if as_json:
        print_json([vars(one) for one in tried])
    else:
        console().print(
            f"\n{len(tried)} settings tried, {failed} failed; nothing was made", style="bold"
        )
    return 1 if failed else 0


def settings_of(plan: Plan, count: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The corners of the space first, its middle, and then an even spread."""
    sweep, taken = plan.sweep, set[str]()
    space, seeds = sweep.space, sweep.options.seeds
    for number in range(count):
        if sweep.method == "grid" and space.size is not None:
            if number >= space.size:
                return
            last = space.size - 1
            place = (0, last)[number] if number < 2 else round(last * (number - 1) / (count - 1))
            values = point_at(space, place)
        else:
            draws = _draws(len(space.leaves), number)
            values = space.decode(space.place(draws))
        if seeds:
            values = {**values, sweep.options.seed_parameter: seeds[number % len(seeds)]}
        swept = space.swept(values)
        name = trial_name(swept, lambda _name: False, sweep.options.name)
        if name not in taken:
            taken.add(name)
            yield name, values


def _draws(dimensions: int, number: int) -> list[float]:
    if number < 3:
        return [(0.0, 1.0, 0.5)[number]] * dimensions
    return quasi_random(dimensions, 0, number - 3)


def _try(plan: Plan, name: str, values: dict[str, Any], seconds: float) -> Tried:
    with tempfile.TemporaryDirectory(prefix="runyard-check-") as held:
        folder = Path(held)
        (folder / "checkpoints").mkdir()
        parameters = folder / "parameters.yaml"
        parameters.write_text(parameter_file(values))
        begun = time.monotonic()

        def json_file(text: str) -> str:
            (folder / "parameters.json").write_text(text)
            return str(folder / "parameters.json")

        environ = _environment(folder, name, parameters)
        words = expand(plan.sweep.command, plan.sweep.program, values, environ, json_file)
        try:
            with (folder / "output").open("wb") as output:
                process = subprocess.Popen(
                    words,
                    cwd=plan.folder,
                    env=environ,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            return Tried(name, values, False, f"could not be started: {error}", 0.0)
        try:
            rows = _wait(process, folder, begun + seconds)
            code = process.poll()
        finally:
            _end(process)
        lasted = time.monotonic() - begun
        odd = _odd_value(rows, [metric.name for metric in plan.sweep.metrics])
        is_good = code in (0, None) and odd is None
        how = _how(code, len(rows), lasted) if odd is None else odd
        text = (folder / "output").read_text(errors="replace")
        said = "" if is_good else "\n".join(text.rstrip().splitlines()[-_LAST_LINES:])
        return Tried(name, values, is_good, how, lasted, said)


def _environment(folder: Path, name: str, parameters: Path) -> dict[str, str]:
    dropped = ("WANDB_RUN_ID", "WANDB_API_KEY", "WANDB_BASE_URL")
    return {
        **{key: value for key, value in os.environ.items() if key not in dropped},
        "WANDB_MODE": "offline",
        "WANDB_SILENT": "true",
        "WANDB_DIR": str(folder),
        "WANDB_NAME": name,
        "WANDB_SWEEP_ID": "check",
        "WANDB_SWEEP_PARAM_PATH": str(parameters),
        "WANDB_X_TRANSACTION_LOG_FLUSH_INTERVAL": "0.1",
        "RUNYARD_REHEARSAL": "1",
        "RUNYARD_TRIAL": name,
        "RUNYARD_ATTEMPT": "1",
        "RUNYARD_CHECKPOINT_DIR": str(folder / "checkpoints"),
        "RUNYARD_STOP_FILE": str(folder / "stop"),
        "PYTHONUNBUFFERED": "1",
    }


def _wait(process: subprocess.Popen[bytes], folder: Path, until: float) -> list[dict[str, Any]]:
    """Until it has ended, has logged enough, or the time is over. What it logged."""
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LOOK_EVERY)
        rows = _rows(folder)
        is_over = process.poll() is not None or time.monotonic() >= until
        if is_over or len(rows) >= ENOUGH_STEPS:
            return rows


def _rows(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for file in folder.glob("wandb/*run-*/run-*.wandb"):
        with contextlib.suppress(OSError, ValueError):
            found += [dict(row) for row in read_rows(str(file))]
    return found


def _odd_value(rows: list[dict[str, Any]], metrics: list[str]) -> str | None:
    """What says that it cannot be used: the metric is not a number."""
    for row in rows:
        for name in metrics:
            value = row.get(name)
            if isinstance(value, float) and not math.isfinite(value):
                return f"{name} is {value}"
    return None


def _how(code: int | None, rows: int, seconds: float) -> str:
    logged = f", {rows} rows logged" if rows else ""
    if code is None:
        return f"ran for {duration(seconds)}{logged}"
    if code == 0:
        return f"finished in {duration(seconds)}{logged}"
    return f"exit code {code}" if code > 0 else f"signal {-code}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """The program and all that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECONDS)


def _print(one: Tried) -> None:
    out = console()
    verdict, style = ("ok", "green") if one.is_good else ("failed", "red")
    out.print(f"{verdict:<6}  {one.name}  {one.how}", style=style, soft_wrap=True)
    for line in one.said.splitlines():
        out.print(f"        {line}", soft_wrap=True)
