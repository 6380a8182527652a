"""What a run, the trials of a sweep or a job printed, piece by piece, also until it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from runyard.actions import naming
from runyard.actions.events import Notice
from runyard.actions.watching.log_events import LogLines, LogsRequest, LogText
from runyard.actions.watching.polling import Polling
from runyard.client.api import Api
from runyard.errors import NotFoundError
from runyard.schedulers.choice import cluster
from runyard.shapes.runs import Console, RunDetail

_WAIT_SECONDS = 20.0


def read_logs(
    request: LogsRequest, api: Api, connect: Callable[[], Api]
) -> Iterator[LogText | LogLines | Notice]:
    """`connect` gives the server anew, which may be restarted while we wait."""
    if request.what is None:
        named = naming.Named(run=naming.find_run(api, None))
    else:
        named = naming.find(api, request.what)
    if named.run is not None:
        return _run_log(request, named.run, api, connect)
    if named.sweep is not None:
        from runyard.actions.watching.sweep_logs import sweep_logs

        is_own = _is_own(api, named.sweep["entity"])
        return sweep_logs(request, named.sweep, api, connect, is_own=is_own)
    if named.job is None:
        raise NotFoundError(
            f"runyard has submitted no job {named.number}, and does not know its log",
            mend=cluster().advice("log", named.number or ""),
        )
    from runyard.actions.watching.job_logs import job_logs

    return job_logs(request, named.job, named.task, api, connect)


def _run_log(
    request: LogsRequest, run: RunDetail, api: Api, connect: Callable[[], Api]
) -> Iterator[LogText]:
    after = 0
    held = ""
    is_own = _is_own(api, run["entity"])
    while True:
        page = api.console(run, after)
        if page["next"] == after:
            break
        after = page["next"]
        if request.lines is None:
            yield LogText(page["text"], is_own)
        else:
            held = last_lines(held + page["text"], request.lines)
    yield LogText(held, is_own)

    def next_page(api: Api) -> Console:
        return api.console(run, after, wait=_WAIT_SECONDS)

    polling = Polling(api, connect)
    while request.follow and not page["ended"]:
        page = polling.ask(next_page)
        after = page["next"]
        yield LogText(page["text"], is_own)


def _is_own(api: Api, entity: str) -> bool:
    """Whether only the caller writes there."""
    return api.people.me()["name"] == entity


def last_lines(text: str, number: int) -> str:
    """As `tail` has it: a progress bar, which draws over itself, is one line."""
    lines = text.split("\n")
    unfinished = 1 if lines[-1] else 0
    return "\n".join(lines[max(0, len(lines) - 1 + unfinished - number) :]) if number else ""
