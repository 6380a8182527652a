"""`upsertSweep` makes a sweep, changes and steers it; `enqueueSweepRun` adds a trial to it."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any

from runyard.reading.problems import Problem, show
from runyard.search.sweep import Sweep
from runyard.server.http.scopes import REFUSAL
from runyard.server.people.permissions import ALL
from runyard.server.store.names import BadName, check_project
from runyard.server.store.sql import Row
from runyard.server.sweeps.ledger import sweep_changes, sweeps
from runyard.server.sweeps.policy.controller_requests import plain_value, read_controller
from runyard.server.sweeps.policy.strange_words import strange_in_settings, strange_in_space
from runyard.server.sweeps.serving.creation import (
    BadPrior,
    BadSweep,
    SweepFile,
    new_file,
    new_sweep,
    read_file,
)
from runyard.server.sweeps.serving.drawing import Drawing
from runyard.server.wandb_api.fields.sweep_fields import sweep_fields
from runyard.server.wandb_api.graphql.inputs import SWEEP, Arguments
from runyard.server.wandb_api.graphql.request import Refusal, Request, Source, must_write


def mutations(request: Request) -> Source:
    async def upsert_sweep(arguments: Arguments) -> Source:
        if arguments.get("launchScheduler") is not None:
            raise Refusal("there are no queues of W&B Launch here: use `wandb sweep` and agents")
        key = arguments.key("id", SWEEP)
        change = _create(request, arguments) if key is None else _change(request, key, arguments)
        try:
            row, warnings = await change
        except BadSweep as error:
            raise Refusal(_as_message(error.problems)) from error
        except (BadPrior, BadName, sweep_changes.Refused) as error:
            raise Refusal(str(error)) from error
        request.tracker.sweeps.wake(row["key"])
        return {
            "sweep": sweep_fields(request, row),
            # Clients call these violations. Of the scheduler they speak themselves.
            "configValidationWarnings": [
                str(problem) for problem in warnings if problem.path[:1] != ("scheduler",)
            ],
        }

    async def enqueue_sweep_run(arguments: Arguments) -> Source:
        row = await _sweep(request, arguments.key("id", SWEEP) or 0)
        config = arguments.json("config")
        if config is None:
            raise Refusal("config is missing: the values of the run")
        settings = {name: plain_value(item) for name, item in json.loads(config).items()}
        sweep = await _file_for_values(request, row)
        if sweep.options.tasks:
            raise Refusal("the trials of this sweep are a list of command lines, and no more")
        _refuse_strange_words(request, sweep, settings)
        try:
            trial = await request.tracker.write(
                sweep_changes.enqueue_run,
                row["key"],
                settings,
                Drawing(sweep, row["seed"]).name,
                request.caller.key,
                time.time(),
                shown=arguments.text("displayName"),
            )
        except sweep_changes.Refused as error:
            raise Refusal(str(error)) from error
        request.tracker.sweeps.wake(row["key"])
        return {"id": trial["id"], "runQueueItemId": None}

    return {"upsertSweep": upsert_sweep, "enqueueSweepRun": enqueue_sweep_run}


def _as_message(problems: Sequence[Problem]) -> str:
    """For a terminal: clients print it as it is. W&B would make the sweep, and fail later."""
    count = f"{len(problems)} mistakes" if len(problems) > 1 else "a mistake"
    return "\n".join([f"the sweep has {count}:", *(f"  {problem}" for problem in problems)])


async def _create(request: Request, arguments: Arguments) -> tuple[Row, Sequence[Problem]]:
    file = await _read(arguments.text("config") or "")
    entity = arguments.text("entityName") or file.sweep.entity or request.caller.name
    project = arguments.text("projectName") or file.sweep.project or "uncategorized"
    check_project(entity)
    check_project(project)
    must_write(request, entity)
    prior = _prior(arguments.json("priorRunsFilters"))
    name = arguments.text("displayName")
    row = await request.tracker.write(
        new_sweep,
        file,
        entity=entity,
        project=project,
        user=request.caller.key,
        name=name,
        seed=secrets.randbits(31),
        prior=prior,
        now=time.time(),
    )
    return row, file.warnings


async def _change(
    request: Request, key: int, arguments: Arguments
) -> tuple[Row, Sequence[Problem]]:
    tracker = request.tracker
    row = await _sweep(request, key)
    warnings: Sequence[Problem] = ()
    text = arguments.text("config")
    if text is not None:
        file, before = await _read(text), await _read(row["text"])
        warnings = file.warnings
        # A controller sends the file along with everything that it says.
        if file.data != before.data:
            _refuse_other_program(request, before, file)
            new = new_file(file, before)
            await tracker.write(sweep_changes.change_file, key, new, time.time())
    name = arguments.text("displayName")
    if name and name != row["name"]:
        await tracker.write(sweeps.update, key, time.time(), name=name)
    controller = arguments.json("controller")
    if controller is not None:
        wishes = read_controller(controller)
        sweep = await _file_for_values(request, row)
        for _mark, settings in wishes.settings:
            _refuse_strange_words(request, sweep, settings)
        naming = Drawing(sweep, row["seed"])
        await tracker.write(
            sweep_changes.obey_controller, key, controller, wishes, naming.name, time.time()
        )
    state = arguments.text("state")
    if state is not None:
        await tracker.write(sweep_changes.set_state, key, state.lower(), time.time())
    return await tracker.read(sweeps.get, key), warnings


async def _sweep(request: Request, key: int) -> Row:
    row = await request.tracker.read(sweeps.by_key, key)
    if row is None or not request.may_read(row["entity"]):
        raise Refusal("there is no such sweep any more")
    must_write(request, row["entity"])
    return row


async def _file_for_values(request: Request, row: Row) -> Sweep:
    """What the sweep's file says, if the caller may add values to try."""
    sweep = (await request.tracker.sweeps.plan_of(row)).sweep
    if sweep.options.tasks and request.caller.scope != ALL:
        raise Refusal(REFUSAL)  # Its values are command lines.
    return sweep


def _refuse_other_program(request: Request, before: SweepFile, after: SweepFile) -> None:
    """Agents run what the file says: with a key that programs have, nobody changes that."""
    same = all(
        getattr(before.sweep, name) == getattr(after.sweep, name)
        for name in ("program", "command", "options")
    )
    if request.caller.scope != ALL and (not same or before.sweep.options.tasks):
        raise Refusal(f"a sweep's program stays as it is: {REFUSAL}")
    strange = strange_in_space(after.sweep.space, before.sweep)
    if request.caller.scope != ALL and strange is not None:
        raise Refusal(f"{show(strange)} is new in the sweep's file: {REFUSAL}")


def _refuse_strange_words(request: Request, sweep: Sweep, settings: Mapping[str, Any]) -> None:
    """They become words of a command, too."""
    strange = strange_in_settings(settings, sweep)
    if request.caller.scope != ALL and strange is not None:
        raise Refusal(f"{show(strange)} is not among the sweep's parameters and values: {REFUSAL}")


async def _read(text: str) -> SweepFile:
    # Beside the event loop: a long list of values takes its time.
    return await asyncio.to_thread(read_file, text)


def _prior(filters: str | None) -> list[str]:
    """Ids of runs, out of the filter that clients make of them: {"$or": [{"name": id}, ...]}."""
    tests = json.loads(filters or "{}").get("$or", [])
    names = [test.get("name") for test in tests if isinstance(test, dict)]
    if not isinstance(tests, list) or not all(isinstance(name, str) for name in names):
        raise Refusal("priorRunsFilters is not a list of runs by their names")
    return [name for name in names if isinstance(name, str)]
