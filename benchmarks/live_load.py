"""Thousands of runs that log once a second, each row posted at once, with pages open on them.

    python -m benchmarks.live_load [--runs 2000] [--seconds 300] [--pages 50] [--busy]

The stock client sends every 15 seconds; what is sent here is the same, as often as the server
answers: a run's next post has all rows that came due since its last one. Counted is how late a row
is acknowledged, from the moment at which it was logged. An open page listens to the project, and
asks for the list's changes and for the curves of 12 charts of a run whenever it is told something.
Every row is read again at the end. Beside it stands the floor: a route that does nothing, asked by
as many connections in the same way.

With `--busy`, a run of 300,000 rows is forked, rewound and asked where it can be resumed, 100,000
other runs are listed, and the state is backed up meanwhile: what counts then is also the longest
time in which nobody's row is acknowledged.
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
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import uvloop

from benchmarks import long_lists
from benchmarks.handout import NOTHING
from benchmarks.many_runs import cpu_seconds
from benchmarks.wire import PROJECT, WireRun, connect, fill, row
from runyard.client import discover
from runyard.home import Discovery, Home, read_discovery

METRICS = 10
# What a page shows of a large project: the most lines of a chart, and the charts in sight.
LINES, CHARTS = 100, ["m0", "m1", "m2", "m3"]
LIMIT_ALONE, LIMIT_WITH_PAGES = 1.0, 2.0
LONG, LONG_ROWS, OTHER_RUNS = "long", 300_000, 100_000
RESUME = """query($e: String, $p: String, $n: String!) { model(entityName: $e, name: $p) {
  bucket(name: $n, missingOk: true) { historyLineCount eventsLineCount logLineCount historyTail
    eventsTail summaryMetrics config } } }"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--pages", type=int, default=0)
    parser.add_argument("--busy", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "state")
        if args.busy:
            prepare_work(home, Path(folder))
        discover.start_server(home)
        try:
            return measure(home, args.runs, args.seconds, args.pages, busy=args.busy)
        finally:
            discover.stop_server(home)


def prepare_work(home: Home, folder: Path) -> None:
    long_lists.build(folder, OTHER_RUNS)
    discover.start_server(home)
    connection = connect(home)
    WireRun(connection, LONG).start()
    key = connection.get("/api/run", name=f"{PROJECT}/{LONG}")["key"]
    discover.stop_server(home)
    fill(home, [key], LONG_ROWS, METRICS)


def work(home: Home, acknowledged: Acknowledged) -> None:
    """What others ask of the server meanwhile, and how long nobody's row was acknowledged."""
    discovery = read_discovery(home)
    assert discovery is not None
    connection, run = connect(home), WireRun(connect(home), LONG)
    entity = connection.get("/api/run", name=f"{PROJECT}/{LONG}")["entity"]
    child, caller = WireRun(connection, "child", 1.8e9), long_lists.Caller(discovery, entity)
    branch = {"branch_point": {"run_id": LONG, "step": LONG_ROWS - 100}}
    copy = str(home.path.parent / "copy")
    tasks: dict[str, Callable[[], object]] = {
        "nothing else": lambda: time.sleep(5),
        f"fork of {LONG_ROWS:,} rows": lambda: child.start(branch),
        "rewind by half": lambda: run.rewind(LONG_ROWS // 2),
        "where to resume": lambda: caller.ask(RESUME, p=PROJECT, e=entity, n=LONG),
        f"list of {OTHER_RUNS:,} runs": lambda: caller.get("/api/runs"),
        "backup": lambda: discover.connect(discovery).backup(copy, lambda *_: None),
    }
    acknowledged.first.wait()
    gap = acknowledged.longest_gap
    for name, task in tasks.items():
        gap()
        begin = time.perf_counter()
        task()
        took = time.perf_counter() - begin
        print(f"{name}: {took:.1f} s, meanwhile the longest gap {gap() * 1e3:.0f} ms", flush=True)


def measure(home: Home, runs: int, seconds: int, pages: int, *, busy: bool = False) -> int:
    discovery = read_discovery(home)
    assert discovery is not None
    connection = connect(home)
    names = [f"run{number:05d}" for number in range(runs)]
    for name in names:
        run = WireRun(connection, name)
        run.start()
    entity = run.entity
    floor = uvloop.run(load(discovery, "", names, min(seconds, 20), 0, Acknowledged()))
    print(line("a route that does nothing", floor), flush=True)
    begin, cpu = time.time(), cpu_seconds(discovery.pid)
    acknowledged = Acknowledged()
    worker = threading.Thread(target=work, args=(home, acknowledged))
    if busy:
        worker.start()
    lates = uvloop.run(load(discovery, entity, names, seconds, pages, acknowledged))
    wall = time.time() - begin
    if busy:
        worker.join()
    print(line(f"rows, {pages} pages open", lates))
    share = (cpu_seconds(discovery.pid) - cpu) / wall
    status = Path(f"/proc/{discovery.pid}/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    print(f"server: {share:.0%} of one core, {peak:.0f} MB at its peak")
    api = discover.connect(discovery)
    wrong = []
    ours = set(names)
    for run_ in api.runs(project=PROJECT):
        if run_["id"] not in ours:
            continue
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


class Client(asyncio.Protocol):
    """A connection that is kept; as little work as possible, for it shares the server's cores."""

    def __init__(self, discovery: Discovery) -> None:
        host, _, port = discovery.url.split("//")[1].rpartition(":")
        self._where = (host, int(port))
        word = base64.b64encode(f"api:{discovery.key}".encode()).decode()
        self._head = f"Host: {host}\r\nAuthorization: Basic {word}\r\nContent-Length: "
        self._came = b""
        self._answer: asyncio.Future[bytes] | None = None

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_connection(lambda: self, *self._where)

    def close(self) -> None:
        self._transport.close()

    async def ask(self, method: str, path: str, body: str = "") -> bytes:
        """What is answered; with an OSError, unless it is 200 or what `NOTHING` is answered."""
        self._well = b"HTTP/1.1 404" if path == NOTHING else b"HTTP/1.1 200"
        self._answer = asyncio.get_running_loop().create_future()
        self._send(method, path, body)
        return await self._answer

    async def listen(self, path: str) -> asyncio.StreamReader:
        """What the server sends from now on."""
        self._stream = asyncio.StreamReader()
        self._came = b"listening"
        self._send("GET", path, "")
        await self._stream.readuntil(b"\r\n\r\n")
        return self._stream

    def _send(self, method: str, path: str, body: str) -> None:
        self._transport.write(
            f"{method} {path} HTTP/1.1\r\n{self._head}{len(body)}\r\n\r\n{body}".encode()
        )

    def data_received(self, data: bytes) -> None:
        if self._came == b"listening":
            self._stream.feed_data(data)
            return
        self._came += data
        head, _, body = self._came.partition(b"\r\n\r\n")
        size = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
        if not size or len(body) < int(size):
            return
        self._came = b""
        if self._answer is None or self._answer.done():
            return
        if head.startswith(self._well):
            self._answer.set_result(body)
        else:
            self._answer.set_exception(OSError(head.decode(errors="replace")))

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error or OSError("the server closed the connection"))


class Acknowledged:
    """When a row was acknowledged, whoever's it was."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self._longest = 0.0
        self.first = threading.Event()

    def note(self) -> None:
        self.first.set()
        now = time.perf_counter()
        self._longest = max(self._longest, now - self._last)
        self._last = now

    def longest_gap(self) -> float:
        """Since it was asked last."""
        longest = max(self._longest, time.perf_counter() - self._last)
        self._longest = 0.0
        return longest


async def load(
    discovery: Discovery,
    entity: str,
    names: Sequence[str],
    seconds: int,
    pages: int,
    acknowledged: Acknowledged,
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
            # A sleep may end a moment early: the row goes all the same, never a post without one.
            ready = min(seconds, max(sent, int(clock() - begin - offset)) + 1)
            if entity:
                rows = [row(step, METRICS) for step in range(sent, ready)]
                files = {"wandb-history.jsonl": {"offset": sent, "content": rows}}
                path = f"/files/{entity}/{PROJECT}/{name}/file_stream"
                await client.ask("POST", path, json.dumps({"files": files}))
            else:
                await client.ask("GET", NOTHING)
            acknowledged.note()
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
