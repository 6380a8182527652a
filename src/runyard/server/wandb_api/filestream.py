"""`file_stream`: the route by which a client sends what it logs.

A client that is answered 4xx sends nothing more for the rest of its life. So that is the answer
only to what cannot be read at all, and would be as unreadable the next time.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from runyard.server.history.history import EVENTS, HISTORY
from runyard.server.history.merging import Merge
from runyard.server.http.access import caller_of, must_write
from runyard.server.http.answers import (
    LARGEST_BODY,
    HttpError,
    answer,
    parse_json,
    read_json,
    whole_text,
)
from runyard.server.http.direct_requests import DirectWork, ReadyAnswer
from runyard.server.people.permissions import Caller
from runyard.server.store.store import Needed
from runyard.server.tracker import Tracker
from runyard.server.tracking import deletion
from runyard.server.tracking.appending import Arrived, Place
from runyard.server.tracking.streams import Post, Recorded

log = logging.getLogger(__name__)

_STREAMS = {"wandb-history.jsonl": HISTORY, "wandb-events.jsonl": EVENTS}
# More lines than any run has, and far from where SQLite's integers end.
_LARGEST_OFFSET = 2**48
_LONGEST_WRITER = 128
_GO_ON = ReadyAnswer(answer({"exitcode": None, "limits": {}}))
_STOPPED = ReadyAnswer(answer({"exitcode": None, "limits": {}, "stopped": True}))


async def file_stream(request: Request) -> Response:
    tracker: Tracker = request.app.state.tracker
    path = request.path_params
    place = (path["entity"], path["project"], path["run"])
    # It ends the client's stream, on purpose: whoever was put out of a team writes no more.
    must_write(request, caller_of(request), place[0])
    body = await read_json(request, LARGEST_BODY)
    post = read_post(body, read_writer(request.headers), caller_of(request).key_id)
    return await _store(tracker, place, post)


async def _store(
    tracker: Tracker, place: Place, post: Post, began: asyncio.Future[Recorded | None] | None = None
) -> Response:
    """Store a post, and answer. `began`: it is handed in already."""
    recorded = await _record(tracker, place, post, began)
    if recorded is None:
        if await tracker.read(deletion.is_deleted, *place):
            # On purpose: nothing more can come of this stream, and its client shall know.
            raise HttpError(404, f"run {'/'.join(place)} was deleted")
        # A 404 would end the client's stream for good; the run may be back after a restore.
        log.warning("a client streams to %r, which is not known here", "/".join(place))
        return answer({"error": f"run {'/'.join(place)} is not known here"}, 503)
    _note(tracker, recorded, post)
    stop = recorded.stop_asked
    if recorded.trial is not None:
        _, lines = post.rows.get(HISTORY, (0, ()))
        stop = await tracker.sweeps.hear(recorded.trial, recorded.place, lines) or stop
    return (_STOPPED if stop else _GO_ON).response


def post_directly(
    tracker: Tracker, caller: Caller, path: Mapping[str, str], headers: Headers, body: bytes
) -> DirectWork | None:
    """`file_stream`, beside the application."""
    place = (path["entity"], path["project"], path["run"])
    if not tracker.accounts.may_write(caller, place[0]) or read_writer(headers):
        return None
    try:
        post = read_post(parse_json(body, LARGEST_BODY), key_id=caller.key_id)
    except HttpError:
        return None
    return _DirectPost(tracker, place, post)


class _DirectPost(DirectWork):
    """A short post that is handed in."""

    def __init__(self, tracker: Tracker, place: Place, post: Post) -> None:
        self._tracker = tracker
        self._place = place
        self._post = post
        self.began: asyncio.Future[Recorded | None] = tracker.posts.hand_in(Arrived(place, post))

    def ready(self) -> ReadyAnswer | None:
        if self.began.cancelled() or self.began.exception() is not None:
            return None
        recorded = self.began.result()
        if recorded is None or recorded.trial is not None:
            return None
        _note(self._tracker, recorded, self._post)
        return _STOPPED if recorded.stop_asked else _GO_ON

    async def finish(self) -> Response:
        return await _store(self._tracker, self._place, self._post, self.began)


def _note(tracker: Tracker, recorded: Recorded, post: Post) -> None:
    if post.rows or post.complete:
        count = sum(len(rows) for _, rows in post.rows.values())
        tracker.joiner.note(recorded.run, count, complete=post.complete)


async def _record(
    tracker: Tracker, place: Place, post: Post, began: asyncio.Future[Recorded | None] | None
) -> Recorded | None:
    """Store a post, a long one in parts; what the last part came to, and the first row's place."""
    first, *rest = post.parts()
    recorded = await _record_part(tracker, place, first, began)
    for part in rest:
        if recorded is None:
            return None
        later = await _record_part(tracker, place, part)
        recorded = None if later is None else later._replace(place=recorded.place)
    return recorded


async def _record_part(
    tracker: Tracker,
    place: Place,
    post: Post,
    began: asyncio.Future[Recorded | None] | None = None,
) -> Recorded | None:
    while True:
        try:
            return await (began or tracker.posts.hand_in(Arrived(place, post)))
        except Needed as needed:
            began = None
            await tracker.transfer(needed.run, needed.transfer)
            if isinstance(needed.transfer, Merge):
                post = post.without(needed.transfer.stream)


def read_writer(headers: Mapping[str, str]) -> str:
    """In shared mode, which of the run's writers speaks; its two headers mean the same."""
    if headers.get("x-wandb-use-async-filestream", "").lower() != "true":
        return ""
    named = headers.get("x-wandb-async-client-id") or headers.get("x-wandb-client-id") or ""
    return named[:_LONGEST_WRITER]


def read_post(body: Mapping[str, Any], writer: str = "", key_id: str = "") -> Post:
    """Check and translate the body of a post."""
    rows: dict[int, tuple[int, list[str]]] = {}
    output: tuple[int, list[str]] = (0, [])
    summary = None
    files = body.get("files") or {}
    if not isinstance(files, dict):
        raise HttpError(400, "files is not an object")
    for name, part in files.items():
        offset, content = _read_part(name, part)
        if name in _STREAMS:
            rows[_STREAMS[name]] = (offset, [_one_line(line, " ") for line in content])
        elif name == "output.log":
            output = (offset, [_one_line(line, "\\n") for line in content])
        elif name == "wandb-summary.json" and content:
            summary = _read_summary(content[-1])
    return Post(
        rows=rows,
        output=output,
        summary=summary,
        preempting=bool(body.get("preempting")),
        complete=bool(body.get("complete")),
        exit_code=_read_exit_code(body.get("exitcode")),
        writer=writer,
        key_id=key_id,
    )


def _read_part(name: str, part: Any) -> tuple[int, list[str]]:
    if not isinstance(part, dict):
        raise HttpError(400, f"{name[:100]} is not an object")
    offset, content = part.get("offset") or 0, part.get("content") or []
    if not isinstance(offset, int) or not 0 <= offset <= _LARGEST_OFFSET:
        raise HttpError(400, f"{name[:100]}: offset {str(offset)[:50]} is not a line number")
    if not isinstance(content, list) or not all(isinstance(line, str) for line in content):
        raise HttpError(400, f"{name[:100]}: content is not a list of lines")
    return offset, content


def _read_summary(line: str) -> str | None:
    """The summary, if it is one; a broken one must not end the stream, nor be shown to anyone."""
    text = whole_text(line)
    try:
        if isinstance(json.loads(text), dict):
            return text
    except (ValueError, RecursionError):
        pass
    log.warning("a client sent a summary that is not a JSON object: it was passed over")
    return None


def _read_exit_code(value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None or isinstance(value, bool):
        return 0
    # Whatever else it may mean, it does not mean success.
    return value if isinstance(value, int) and abs(value) < 2**31 else 1


def _one_line(line: str, instead: str) -> str:
    # Python-generation clients end their lines; inside, a line feed would make two of one. In
    # JSON it can only be a blank between values.
    return line.removesuffix("\n").replace("\n", instead) if "\n" in line else line
