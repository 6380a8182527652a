"""runyard's own API of the server itself: how it is, that it is the right one, its end."""

from __future__ import annotations

import asyncio
import os
import socket
from dataclasses import asdict
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from runyard.proof import PROOF_PATH, on_this_machine, prove
from runyard.server.http.access import (
    caller_of,
    need_admin,
    tracker_of,
)
from runyard.server.http.answers import (
    HttpError,
    answer,
)
from runyard.server.http.routes import Access, Endpoints
from runyard.server.people.permissions import RUNS, readable
from runyard.server.runs import runs
from runyard.shapes.runs import (
    Health,
    Proof,
)
from runyard.version import __version__

api = Endpoints("server")


@api.get("/api/health", RUNS, answer=Health)
async def health(request: Request) -> Response:
    """How many runs the caller has; to the admin also version, process and database."""
    tracker, caller = tracker_of(request), caller_of(request)
    count, running = await tracker.read(runs.count_of, readable(caller))
    counts = {"runs": count, "running": running}
    if not caller.admin:
        return answer(counts)
    # Beside the event loop: on a busy network file system a stat can take seconds.
    size = await asyncio.to_thread(_database_bytes, tracker.home.path)
    return answer(
        {
            "version": __version__,
            "pid": os.getpid(),
            "hostname": socket.gethostname(),
            "started_at": tracker.started_at,
            "home": str(tracker.home.path),
            **counts,
            "database_bytes": size,
            "writer": {kind: asdict(times) for kind, times in tracker.writer_times.items()},
            "note": tracker.note,
        }
    )


@api.get(
    PROOF_PATH,
    access=Access.EVERYBODY,
    query={"key": str, "nonce": str},
    answer=Proof,
    tag="server",
)
async def proof(request: Request) -> Response:
    """Proves, before a key is sent, that this server knows it: HMAC-SHA256, by the key's hash, of
    the nonce and the server's own address; `proof_here`: of its port and its machine.
    """
    query, tracker = request.query_params, tracker_of(request)
    key = tracker.accounts.good_key(query.get("key", ""))
    if key is None:
        raise HttpError(404, "there is no such key")
    nonce = query.get("nonce", "")[:100]
    return answer(
        {
            "proof": prove(key.hashed, nonce, tracker.url),
            "proof_here": prove(key.hashed, nonce, on_this_machine(tracker.url)),
        }
    )


@api.post(
    "/api/server/stop",
    access=Access.KEY,
    query={"keep_port": int},
    answer={"stopping": bool},
    tag="server",
)
async def stop_server(request: Request) -> Response:
    """End the server (its owner only); with keep_port=1 its port stays bound for the next one."""
    need_admin(request, "stop the server")
    # Whoever starts it again at once keeps the port from others meanwhile.
    request.app.state.keeps_port = request.query_params.get("keep_port") == "1"
    request.app.state.stop()
    return answer({"stopping": True})


def _database_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("runyard.db*") if path.is_file())
