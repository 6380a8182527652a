"""`runyard.submit` and `runyard.map`: a program or a function, as a job or on this machine."""

from __future__ import annotations

import inspect
import os
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, overload

from runyard.actions.submit import SubmitRequest, list_of
from runyard.actions.submitting.submission import ClusterOptions, SweepSubmitted
from runyard.actions.sweeping.slots import Slots
from runyard.actions.sweeping.task_lists import ListRequest, start_list, submit_list
from runyard.config.flags import Flags, flag
from runyard.config.task_list import TaskList, safe_name
from runyard.errors import UsageError
from runyard.home import locate, prepare
from runyard.schedulers.choice import has_queue
from runyard.scripting.calls import Call, CallFolder, name_of
from runyard.scripting.jobs import FunctionJob, Job
from runyard.scripting.options import OPTIONS, JobOptions, Options, log_notice, read_options
from runyard.scripting.watch import Watch
from runyard.search.tasks import COMMAND_LINE, NUMBER, Task

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")
# Of what is shown of a call's arguments; they themselves may be anything.
_LONGEST_TEXT, _LARGEST = 200, 2**53


@overload
def submit(command: Sequence[str], /, **options: Unpack[Options]) -> Job: ...
@overload
def submit(function: Callable[..., T], /, *args: Any, **keywords: Any) -> FunctionJob[T]: ...
def submit(what: Sequence[str] | Callable[..., Any], /, *args: Any, **keywords: Any) -> Job:
    """Start a program, or a call of a function, and return its handle at once.

        job = runyard.submit(["python", "train.py"], gpus=1, time="2h")
        job = runyard.submit(train, 3, lr=0.1, gpus=1, time="2h")

    It is a job of the cluster if there is one; otherwise it runs here in the background. `on` is
    "slurm" or "here". `gpus`, `cpus`, `memory`, `time` and the others of `Options` are runyard's;
    all other keywords go to the function. runyard.yaml is read as by `runyard submit`.
    """
    if callable(what):
        arguments = {name: value for name, value in keywords.items() if name not in OPTIONS}
        options = {name: value for name, value in keywords.items() if name in OPTIONS}
        _refuse_two_meanings(what, options)
        [job] = submit_calls([Call(what, args, arguments)], None, options)
        return job
    if args or isinstance(what, str):
        words = shlex.split(what) if isinstance(what, str) else [*what, *args]
        raise UsageError("a program is a list of words", mend=f"runyard.submit({words})")
    job_options = read_options(keywords)
    request = SubmitRequest(
        [os.fspath(word) for word in what],
        job_options.folder,
        job_options.project,
        name=job_options.name,
        retries=job_options.retries,
        warm=job_options.warm,
    )
    return Job(_start(list_of(request, log_notice), "run", job_options))


def map(
    function: Callable[..., T],
    iterable: Iterable[Any],
    /,
    *iterables: Iterable[Any],
    at_once: int | None = None,
    **options: Unpack[Options],
) -> list[FunctionJob[T]]:
    """Start one job for each call of the function; iterables are as for Python's `map`.

        jobs = runyard.map(train, [0.1, 0.01], gpus=1, time="2h")
        results = [job.result() for job in jobs]

    On the cluster they are the tasks of one array; here `at_once` of them run at a time (default:
    the number of CPUs). Returns the jobs at once, in the order of the items.
    """
    calls = [Call(function, items) for items in zip(iterable, *iterables, strict=True)]
    return submit_calls(calls, at_once or 0, options) if calls else []


def submit_calls(
    calls: Sequence[Call], at_once: int | None, options: Mapping[str, Any]
) -> list[FunctionJob[Any]]:
    """`at_once` is None for a single call, and 0 for a list without a limit."""
    is_alone = at_once is None
    configs = [_config(call) for call in calls]
    job_options = read_options(options)
    home = locate()
    prepare(home)
    folder = CallFolder.make(home.path, job_options.folder, calls)
    name = job_options.name or name_of(calls[0].function)
    tasks = {
        number: Task(
            safe_name(call.name or (name if is_alone else f"{name}-{number}")),
            folder.command_line(number),
            config,
        )
        for number, (call, config) in enumerate(zip(calls, configs, strict=True), start=1)
    }
    request = ListRequest(
        TaskList(name, tasks),
        job_options.folder,
        job_options.project,
        name=job_options.name,
        retries=job_options.retries,
        warm=job_options.warm,
    )
    try:
        watch = _start(request, "run" if is_alone else "farm", job_options, at_once)
    except BaseException:
        shutil.rmtree(folder.path, ignore_errors=True)
        raise
    return [FunctionJob(watch, folder, number, is_alone=is_alone) for number in tasks]


def _start(
    request: ListRequest, kind: str, job_options: JobOptions, at_once: int | None = None
) -> Watch:
    if not has_queue(job_options.on):
        most = at_once or os.cpu_count() or 1
        slots = Slots(1 if at_once is None else min(most, len(request.tasks.tasks)))
        sweep, agent = start_list(replace(request, slots=slots), log_notice, job_options.seconds)
        return Watch(sweep, locate(), agent)
    flags = request.options.flags
    limits = {"agents.at_once": at_once}
    if flags["agents.chain"] and not flags["agents.count"]:  # So many chains side by side.
        limits = {"agents.count": at_once or len(request.tasks.tasks)}
    limited = {path: flag(path, [limit]) for path, limit in limits.items() if limit}
    options = replace(request.options, flags=Flags({**flags.given, **limited}))
    request = replace(request, options=options)
    outcome = submit_list(request, kind, ClusterOptions(), log_notice)
    assert isinstance(outcome, SweepSubmitted), "nobody was asked, and it was no preview"
    return Watch(outcome.sweep, locate())


def _refuse_two_meanings(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """A keyword that both runyard and the function have."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # Some that are written in C tell nothing of themselves.
        return
    for name in options:
        if name in parameters:
            raise UsageError(
                f"{name}= is an option of runyard.submit, and {name_of(function)} has a parameter "
                "of that name",
                mend=f"functools.partial({name_of(function)}, {name}=...) gives it to the function",
            )


def _config(call: Call) -> dict[str, Any]:
    """What a table can show, for the run's config. TypeError, as Python raises it, where the
    function does not take its arguments."""
    values = call.values
    if values is None:
        try:
            signature = inspect.signature(call.function)
        except (TypeError, ValueError):
            return {}
        values = signature.bind(*call.args, **(call.keywords or {})).arguments
    return {
        name: value
        for name, value in values.items()
        if _is_plain(value) and name not in (NUMBER, COMMAND_LINE)
    }


def _is_plain(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_TEXT
    return isinstance(value, int | float) and abs(value) < _LARGEST
