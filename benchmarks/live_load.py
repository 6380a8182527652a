"""Thousands of runs that log once a second, each row posted at once, with pages open on them.

    python -m benchmarks.live_load [--runs 2000] [--seconds 300] [--pages 50]

The stock client sends every 15 seconds; what is sent here is the same, as often as the server
answers: a run's next post has all rows that came due since its last one. Counted is how late a row
is acknowledged, from the moment at which it was logged. An open page listens to the project, and
asks for the list's changes and for the curves of 12 charts of a run whenever it is told something.
Every row is read again at the end. Beside it stands the floor: a route that does nothing,
asked by as many connections in the same way.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.many_runs import cpu_seconds
from benchmarks.wire import PROJECT, WireRun, connect, row
from runyard.client import discover
from runyard.home import Discovery, Home, read_discovery

METRICS = 10
# What a page shows of a large project: the most lines of a chart, and the charts in sight.
LINES, CHARTS = 100, ["m0", "m1", "m2", "m3"]
LIMIT_ALONE, LIMIT_WITH_PAGES = 1.0, 2.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--pages", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "state")
        discover.start_server(home)
        try:
            return measure(home, args.runs, args.seconds, args.pages)
        finally:
            discover.stop_server(home)


def measure(home: Home, runs: int, seconds: int, pages: int) -> int:
    discovery = read_discovery(home)
    assert discovery is not None
    connection = connect(home)
    names = [f"run{number:05d}" for number in range(runs)]
    for name in names:
        run = WireRun(connection, name)
        run.start()
    entity = run.entity
    floor = asyncio.run(load(discovery, "", names, min(seconds, 20), 0))
    print(line("a route that does nothing", floor), flush=True)
    begin, cpu = time.time(), cpu_seconds(discovery.pid)
    lates = asyncio.run(load(discovery, entity, names, seconds, pages))
    wall = time.time() - begin
    print(line(f"rows, {pages} pages open", lates))
    share = (cpu_seconds(discovery.pid) - cpu) / wall
    status = Path(f"/proc/{discovery.pid}/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    print(f"server: {share:.0%} of one core, {peak:.0f} MB at its peak")
    api = discover.connect(discovery)
    wrong = []
    for run_ in api.runs(project=PROJECT):
        steps = [series["steps"] for series in api.metrics(run_, 10**9) if series["key"] == "m0"]
        if steps != [list(range(seconds))]:
            wrong.append(run_["id"])
    print(f"{'every row is stored once' if not wrong else f'{len(wrong)} runs are not whole'}")
    limit = LIMIT_WITH_PAGES if pages else LIMIT_ALONE
    return 0 if not wrong and percentile(lates, 99) < limit else 1


def line(name: str, lates: Sequence[float]) -> str:
    parts = " ".join(f"p{part} {percentile(lates, part) * 1e3:7.1f} ms" for part in (50, 99))
    return f"{name:28} {parts}  longest {max(lates) * 1e3:7.1f} ms  ({len(lates)} rows)"


def percentile(times: Sequence[float], part: int) -> float:
    return statistics.quantiles(times, n=100)[part - 1]


class Client:
    """A connection that is kept; as little work as possible, for it shares the server's cores."""

    def __init__(self, discovery: Discovery) -> None:
        host, _, port = discovery.url.split("//")[1].rpartition(":")
        self._where = (host, int(port))
        word = base64.b64encode(f"api:{discovery.key}".encode()).decode()
        self._head = f"Host: {host}\r\nAuthorization: Basic {word}\r\nContent-Length: "

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(*self._where)

    def close(self) -> None:
        self._writer.close()

    async def ask(self, method: str, path: str, body: str = "") -> bytes:
        self._writer.write(
            f"{method} {path} HTTP/1.1\r\n{self._head}{len(body)}\r\n\r\n{body}".encode()
        )
        head = await self._reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise OSError(head.decode(errors="replace"))
        lower = head.lower()
        size = int(lower.partition(b"content-length:")[2].split(b"\r\n")[0])
        return await self._reader.readexactly(size)

    async def listen(self, path: str) -> asyncio.StreamReader:
        self._writer.write(f"GET {path} HTTP/1.1\r\n{self._head}0\r\n\r\n".encode())
        await self._reader.readuntil(b"\r\n\r\n")
        return self._reader


async def load(
    discovery: Discovery, entity: str, names: Sequence[str], seconds: int, pages: int
) -> list[float]:
    """How late each row was acknowledged. Without an entity, of a route that does nothing."""
    lates: list[float] = []
    clock = asyncio.get_running_loop().time
    clients = [Client(discovery) for _ in names]
    for client in clients:
        # Each shows its key at once: the server keeps few connections without one.
        await client.open()
        await client.ask("GET", "/api/health")
    begin = clock()

    async def log(client: Client, name: str, offset: float) -> None:
        sent = 0
        while sent < seconds:
            due = begin + offset + sent
            if clock() < due:
                await asyncio.sleep(due - clock())
            ready = min(seconds, int(clock() - begin - offset) + 1)
            if entity:
                rows = [row(step, METRICS) for step in range(sent, ready)]
                files = {"wandb-history.jsonl": {"offset": sent, "content": rows}}
                path = f"/files/{entity}/{PROJECT}/{name}/file_stream"
                await client.ask("POST", path, json.dumps({"files": files}))
            else:
                await client.ask("GET", "/api/health")
            now = clock()
            lates.extend(now - begin - offset - step for step in range(sent, ready))
            sent = ready

    looking = [asyncio.ensure_future(look(discovery, entity)) for _ in range(pages)]
    await asyncio.gather(
        *(log(client, name, random.random()) for client, name in zip(clients, names, strict=True))
    )
    for client in clients:
        client.close()
    for page in looking:
        page.cancel()
    await asyncio.gather(*looking, return_exceptions=True)
    return lates


async def look(discovery: Discovery, entity: str) -> None:
    """An open page: the newest hundred runs in four charts, and the list beside them."""
    place = f"{entity}/{PROJECT}"
    hearing, asking = Client(discovery), Client(discovery)
    await hearing.open()
    await asking.open()
    path = f"/api/projects/{place}/runs"
    answer = json.loads(await asking.ask("GET", f"{path}?summary=m0"))
    keys = set((await shown(asking, place))[-LINES:])
    revision = answer["revision"]
    stream = await hearing.listen(f"/api/live?project={place}")
    while True:
        word = await stream.readline()
        if not word.startswith(b"data: "):
            continue
        news = json.loads(word[6:])
        if news.get("runs"):
            answer = json.loads(await asking.ask("GET", f"{path}?summary=m0&since={revision}"))
            revision = answer["revision"]
        grown = keys.intersection(news.get("history") or ())
        if grown:
            body = {"project": place, "metrics": CHARTS, "runs": sorted(grown), "points": 1000}
            await asking.ask("POST", "/api/curves", json.dumps(body))


async def shown(client: Client, place: str) -> list[int]:
    runs = json.loads(await client.ask("GET", f"/api/runs?project={place}"))
    return sorted(run["key"] for run in runs)


if __name__ == "__main__":
    sys.exit(main())
