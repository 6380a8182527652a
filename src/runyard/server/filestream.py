"""`file_stream`: the route by which a client sends what it logs."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.answers import Unacceptable, answer, read_json
from runyard.server.store import runs, streams
from runyard.server.store.streams import Post
from runyard.server.tracker import Tracker

log = logging.getLogger(__name__)

_STREAMS = {
    "wandb-history.jsonl": "history",
    "wandb-events.jsonl": "events",
    "output.log": "output",
}


async def file_stream(request: Request) -> Response:
    tracker: Tracker = request.app.state.tracker
    path = request.path_params
    post = read_post(await read_json(request))
    row = await tracker.read(runs.by_path, path["entity"], path["project"], path["run"])
    found = row is not None and await tracker.write(streams.record, row["key"], post, time.time())
    if not found:
        # A 404 would end the client's stream for good; the run may be back after a restore.
        place = f"{path['entity']}/{path['project']}/{path['run']}"
        log.warning("a client streams to %s, which is not known here", place)
        return answer({"error": f"run {place} is not known here"}, 503)
    return answer({"exitcode": None, "limits": {}})


def read_post(body: Mapping[str, Any]) -> Post:
    """Check and translate the body of a post."""
    lines: dict[str, tuple[int, list[str]]] = {}
    summary = None
    files = body.get("files") or {}
    if not isinstance(files, dict):
        raise Unacceptable(400, "files is not an object")
    for name, part in files.items():
        offset, content = _read_part(name, part)
        if name in _STREAMS:
            lines[_STREAMS[name]] = (offset, content)
        elif name == "wandb-summary.json" and content:
            summary = content[-1]
    exit_code = body.get("exitcode")
    return Post(
        lines=lines,
        summary=summary,
        preempting=bool(body.get("preempting")),
        complete=bool(body.get("complete")),
        exit_code=exit_code if isinstance(exit_code, int) else 0,
    )


def _read_part(name: str, part: Any) -> tuple[int, list[str]]:
    if not isinstance(part, dict):
        raise Unacceptable(400, f"{name} is not an object")
    offset, content = part.get("offset", 0), part.get("content", [])
    if not isinstance(offset, int) or offset < 0:
        raise Unacceptable(400, f"{name}: offset {offset!r} is not a line number")
    if not isinstance(content, list) or not all(isinstance(line, str) for line in content):
        raise Unacceptable(400, f"{name}: content is not a list of lines")
    return offset, [_one_line(line) for line in content]


def _one_line(line: str) -> str:
    # Python-generation clients end console lines; inside, a line feed would make two of one.
    line = line.removesuffix("\n")
    return line.replace("\n", "\\n") if "\n" in line else line
