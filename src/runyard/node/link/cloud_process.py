"""A process beside an agent that speaks with a server elsewhere: W&B's cloud, or one like it.

    python -m runyard.node.link.cloud_process URL

JSON lines, in and out. urllib knows TLS and proxies, and waits for answers; the agent's loop waits
for nothing, and forks, which no program with threads should. In: `{"id": n, "line": k, "do": ...}`,
where what has the same line is done in its order. Out: `{"id": n, "data": ...}`, or `{"id": n,
"error": text, "is_final": whether it would be refused again}`. It ends with its input.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import urllib.parse
from pathlib import Path
from typing import Any

from runyard.client.keys import find_key
from runyard.client.wandb_server import KeyRefused, WandbServer
from runyard.errors import RunyardError

_PREEMPTING = {"preempting": True}


class CloudProcess:
    def __init__(self, url: str) -> None:
        self._url = url
        self._server: WandbServer | None = None
        self._lines: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._opening = threading.Lock()
        self._saying = threading.Lock()

    def hear(self, request: dict[str, Any]) -> None:
        waiting = self._lines.get(request["line"])
        if waiting is None:
            waiting = self._lines[request["line"]] = queue.SimpleQueue()
            threading.Thread(target=self._work, args=(waiting,), daemon=True).start()
        waiting.put(request)

    def _work(self, waiting: queue.SimpleQueue[dict[str, Any]]) -> None:
        while True:
            request = waiting.get()
            try:
                answer: dict[str, Any] = {"data": self._do(request)}
            except RunyardError as error:
                answer = {"error": str(error), "is_final": isinstance(error, KeyRefused)}
            except Exception as error:  # Whatever it is, the agent is told, and the next is done.
                answer = {"error": f"{type(error).__name__}: {error}", "is_final": False}
            with self._saying:
                print(json.dumps({"id": request["id"], **answer}), flush=True)

    def _do(self, request: dict[str, Any]) -> Any:
        server, key = self._open()
        if request["do"] == "open":
            return {"key": key, "ours": _our_key(server, request["sweep"])}
        if request["do"] == "graphql":
            return server.graphql(request["query"], request["variables"])
        entity, project, run = request["run"].split("/")
        if request["is_cut"]:
            server.file_stream(entity, project, run, _PREEMPTING)
        if request["exit_code"] is not None:
            end = {"complete": True, "exitcode": request["exit_code"]}
            server.file_stream(entity, project, run, end)
        return None

    def _open(self) -> tuple[WandbServer, str]:
        with self._opening:
            key = find_key(self._url, os.environ, Path.cwd())
            if self._server is None:
                self._server = WandbServer(self._url, key.key)
            return self._server, key.key


def _our_key(server: WandbServer, sweep: str) -> int | None:
    """The number of a sweep where the server is one of ours after all; None where it is not."""
    answer = server.ask(f"/api/sweep?name={urllib.parse.quote(sweep, safe='')}")
    key = answer.get("key") if isinstance(answer, dict) else None
    return key if isinstance(key, int) else None


def main() -> None:
    process = CloudProcess(sys.argv[1])
    for line in sys.stdin:
        process.hear(json.loads(line))
    os._exit(0)  # Threads may still wait for an answer that nobody wants.


if __name__ == "__main__":
    main()
