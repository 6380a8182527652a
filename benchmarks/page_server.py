"""What the page costs the server: ten thousand runs as columns, a hundred runs' curves, open pages.

    python -m benchmarks.page_server [--runs 10000] [--pages 50] [--seconds 20]

Everything is asked over HTTP from a real server. Costs are the server's CPU time, as the kernel
counts it, so that other work on the machine does not matter much. An open page listens to a project
of 100 runs in which one run gets a point a second, and asks for that run's row and for the curves
of 12 charts whenever it is told: what a page with 12 charts does. Beside it stands what the server
spends on the same points with no page open.
"""

from __future__ import annotations

import argparse
import base64
import functools
import http.client
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.charts import fill
from runyard.client.discover import connect, start_server, stop_server
from runyard.client.http import Connection
from runyard.home import Home, read_discovery
from runyard.server.people.accounts import new_key
from runyard.server.runs import runs
from runyard.server.tracker import Tracker

CHARTS = [f"m{number}" for number in range(10)] + ["_runtime", "_timestamp"]
LIMIT_PERCENT, LIMIT_SECONDS = 1.0, 2.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--pages", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=20.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "state")
        fill(home, {"few": (100, 1_000)})
        fill_many(home, args.runs)
        start_server(home)
        try:
            return measure(home, args.pages, args.seconds)
        finally:
            stop_server(home)


def fill_many(home: Home, count: int) -> None:
    """Runs with twenty settings and twenty results, and no history."""
    tracker = Tracker(home)
    tracker.open(new_key())

    def add(connection: Any, first: int) -> None:
        for number in range(first, min(first + 500, count)):
            new = {"id": f"r{number}", "project": "many", "command": ["x"]}
            row = runs.create_launched(connection, new, entity="me", user=1, now=time.time())
            config = {f"c{k}": {"value": random.random()} for k in range(20)}
            summary = {f"s{k}": random.random() for k in range(20)}
            runs.update(
                connection,
                row["key"],
                config=json.dumps(config),
                summary=json.dumps(summary),
                state="finished",
            )

    for first in range(0, count, 500):
        tracker._database.write(functools.partial(add, first=first)).result()
    print(f"filled {count} runs", file=sys.stderr)
    tracker.close()


class Server:
    """A server that is up: what it answers, and what CPU time it has used."""

    def __init__(self, home: Home) -> None:
        discovery = read_discovery(home)
        assert discovery is not None
        self.key, self.url = discovery.key, discovery.url
        self.pid = connect(discovery).health()["pid"]
        self.connection = Connection(discovery.url, discovery.key)

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def cost(self, ask: Callable[[], object], times: int) -> tuple[float, float]:
        """CPU time and time of one question, in milliseconds."""
        took = []
        before = self.cpu()
        for _ in range(times):
            begin = time.perf_counter()
            ask()
            took.append(time.perf_counter() - begin)
        return (self.cpu() - before) / times * 1e3, statistics.median(took) * 1e3


def measure(home: Home, pages: int, seconds: float) -> int:
    server = Server(home)
    path = "/api/projects/me/many/runs"
    asked = "&".join([*(f"config=c{k}" for k in range(6)), *(f"summary=s{k}" for k in range(6))])
    first = server.cost(lambda: server.connection.get_bytes(f"{path}?{asked}"), 1)
    again = server.cost(lambda: server.connection.get_bytes(f"{path}?{asked}"), 10)
    size = len(server.connection.get_bytes(f"{path}?{asked}"))
    revision = server.connection.get(path)["revision"]
    delta = server.cost(lambda: server.connection.get_bytes(f"{path}?{asked}&since={revision}"), 50)
    print(f"all runs, 12 columns, the first time  {first[0]:7.1f} ms of CPU  {first[1]:7.1f} ms")
    print(
        f"the same again ({size / 1e6:.1f} MB)             "
        f"{again[0]:7.1f} ms of CPU  {again[1]:7.1f} ms"
    )
    print(f"what changed, of nothing              {delta[0]:7.1f} ms of CPU  {delta[1]:7.1f} ms")
    keys = server.cost(lambda: server.connection.get("/api/projects/me/many/keys"), 1)
    print(f"all names, the first time             {keys[0]:7.1f} ms of CPU  {keys[1]:7.1f} ms")
    body = {"project": "me/few", "metrics": CHARTS, "points": 1000}
    curves = server.cost(lambda: server.connection.post_for_bytes("/api/curves", body), 10)
    print(f"12 metrics x 100 runs x 1000 points   {curves[0]:7.1f} ms of CPU  {curves[1]:7.1f} ms")
    return 0 if live(server, pages, seconds) else 1


def live(server: Server, pages: int, seconds: float) -> bool:
    run = server.connection.get("/api/run", name="few/few0")
    writing = Writer(server, run)
    alone = watched(server, writing, [], seconds)
    listening = [PageListener(server, run, writing) for _ in range(pages)]
    for page in listening:
        page.start()
    time.sleep(2)
    together = watched(server, writing, listening, seconds)
    for page in listening:
        page.close()
    each = (together - alone) / pages * 100
    delays = sorted(delay for page in listening for delay in page.delays)
    worst = delays[int(len(delays) * 0.99)] if delays else float("inf")
    print(f"a point a second, no page open        {alone * 100:7.2f} % of a core")
    print(f"with {pages} pages                         {together * 100:7.2f} % of a core")
    print(
        f"each page                             {each:7.3f} % of a core  (limit {LIMIT_PERCENT:g})"
    )
    print(
        f"from a point's arrival to its curve on the page's side: median "
        f"{statistics.median(delays):.2f} s, 99 % within {worst:.2f} s  (limit {LIMIT_SECONDS:g})"
    )
    return each <= LIMIT_PERCENT and worst <= LIMIT_SECONDS


def watched(server: Server, writing: Writer, pages: list[PageListener], seconds: float) -> float:
    """The share of a core that the server used while a point a second was written."""
    for page in pages:
        page.delays.clear()
    begin, before = time.perf_counter(), server.cpu()
    while time.perf_counter() - begin < seconds:
        writing.point()
        time.sleep(1)
    return (server.cpu() - before) / (time.perf_counter() - begin)


class Writer:
    """Logs as a client does, and remembers when."""

    def __init__(self, server: Server, run: dict[str, Any]) -> None:
        self._connection = Connection(server.url, server.key)
        self._run = run
        self.step = run["steps"]
        self.written: dict[int, float] = {}

    def point(self) -> None:
        row = {"_step": self.step, "_runtime": self.step / 7, "_timestamp": time.time()}
        line = json.dumps({**row, **{f"m{number}": random.random() for number in range(10)}})
        run = self._run
        self._connection.post(
            f"/files/{run['entity']}/{run['project']}/{run['id']}/file_stream",
            {"files": {"wandb-history.jsonl": {"offset": self.step, "content": [line]}}},
        )
        self.step += 1
        self.written[self.step] = time.perf_counter()


class PageListener(threading.Thread):
    """What an open page does: listens, and fetches what it is told of."""

    def __init__(self, server: Server, run: dict[str, Any], writing: Writer) -> None:
        super().__init__(daemon=True)
        self._server, self._run, self._writing = server, run, writing
        self._asking = Connection(server.url, server.key)
        self._stream = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
        self._is_over = False
        self.delays: list[float] = []

    def run(self) -> None:
        place = f"{self._run['entity']}/{self._run['project']}"
        key = base64.b64encode(f"api:{self._server.key}".encode()).decode()
        self._stream.request(
            "GET",
            f"/api/live?project={place}",
            headers={"Authorization": f"Basic {key}", "Accept": "text/event-stream"},
        )
        try:
            for line in self._stream.getresponse():
                if line.startswith(b"data: ") and not self._is_over:
                    self._hear(json.loads(line[6:]), place)
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            return  # Closed.

    def _hear(self, news: dict[str, Any], place: str) -> None:
        if news["runs"]:
            since = news["revision"] - 1
            self._asking.get_bytes(f"/api/projects/{place}/runs?summary=m0&since={since}")
        if news["history"]:
            asked = {"project": place, "metrics": CHARTS, "runs": news["history"], "points": 1000}
            body = self._asking.post_for_bytes("/api/curves", asked)
            head = json.loads(body[4 : 4 + int.from_bytes(body[:4], "little")])
            written = self._writing.written.get(head["curves"][0]["count"])
            if written is not None:
                self.delays.append(time.perf_counter() - written)

    def close(self) -> None:
        self._is_over = True
        self._stream.close()


if __name__ == "__main__":
    sys.exit(main())
