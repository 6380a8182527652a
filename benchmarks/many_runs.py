"""Many runs that log at once through the stock client: what each answer takes, and what is stored.

    python -m benchmarks.many_runs [--runs 500] [--seconds 180] [--processes 4]

Each process holds many runs (`reinit="create_new"`), each of which logs ten metrics once a second;
the settings are those that `runyard run` gives a program. Clients and server share the machine.
Beside what the server took for each answer stands what a caller from outside waited for one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from runyard.client.discover import connect, stop_server
from runyard.client.http import Connection
from runyard.client.wandb_variables import wandb_variables
from runyard.home import Discovery, Home, read_discovery

LIMIT_P99 = 1.0
PROJECT = "many"
PROGRAM = """
import sys, time, wandb
from concurrent.futures import ThreadPoolExecutor
number, count, seconds = map(int, sys.argv[1:])
quiet = wandb.Settings(silent=True, console="off")
runs = [
    wandb.init(project="many", id=f"p{number}r{place}", reinit="create_new", settings=quiet)
    for place in range(count)
]
print("ready", flush=True)
sys.stdin.readline()
begin, late = time.time(), 0.0
for step in range(seconds):
    for place, run in enumerate(runs):
        due = begin + step + place / count
        late = max(late, time.time() - due)
        time.sleep(max(0.0, due - time.time()))
        run.log({f"m{m}": step * 1.25 + m / 7 for m in range(9)} | {"step": step})
print(f"{late:.3f}", flush=True)
with ThreadPoolExecutor(8) as finishing:
    list(finishing.map(lambda run: run.finish(), runs))
"""


@dataclass
class Measured:
    """What one load left behind."""

    begin: float
    end: float
    cpu_seconds: float
    rss_megabytes: float
    late: float
    failed_processes: int
    outside: Sequence[float] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=180)
    parser.add_argument("--processes", type=int, default=4, help="among which the runs are shared")
    parser.add_argument("--keep", type=Path, help="a new folder for all that is written")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        folder = args.keep or Path(passing)
        folder.mkdir(exist_ok=True)
        home = Home(folder / "state")
        with serving(home, folder / "notes") as discovery:
            measured = load(discovery, folder, args.runs, args.seconds, args.processes)
            wrong = incomplete(discovery, args.runs, args.seconds)
        return report(measured, folder, wrong, args.runs, args.seconds)


@contextlib.contextmanager
def serving(home: Home, notes: Path) -> Iterator[Discovery]:
    program = Path(__file__).with_name("timed_server.py")
    server = subprocess.Popen(
        [sys.executable, program, home.path, notes], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    with server.stdout as said:
        assert said.readline() == "ready\n"
        try:
            found = read_discovery(home)
            assert found is not None
            yield found
        finally:
            stop_server(home)
            server.wait(60)


def load(discovery: Discovery, folder: Path, runs: int, seconds: int, processes: int) -> Measured:
    shares = [runs // processes + (number < runs % processes) for number in range(processes)]
    environment = {
        **os.environ,
        **wandb_variables(discovery.url, discovery.key, os.environ),
        "WANDB_DIR": str(folder),
        "WANDB_SILENT": "true",
    }
    clients = []
    begin = time.time()
    for number, share in enumerate(shares):
        with (folder / f"stderr{number}").open("w") as errors:
            client = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(number), str(share), str(seconds)],
                cwd=folder,
                env=environment,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        clients.append(client)
    heard = [client.stdout.readline() for client in clients if client.stdout]
    if set(heard) != {"ready\n"}:
        raise SystemExit(f"a client did not start: see {folder}/stderr*")
    say(f"{runs} runs began in {time.time() - begin:.0f} s")
    begin, cpu = time.time(), cpu_seconds(discovery.pid)
    for client in clients:
        assert client.stdin is not None
        client.stdin.write("\n")
        client.stdin.flush()
    with asking_from_outside(discovery) as waits:
        late = [float(client.stdout.readline() or "inf") for client in clients if client.stdout]
    end, cpu = time.time(), cpu_seconds(discovery.pid) - cpu
    failed = sum(client.wait() != 0 for client in clients)
    say(f"they ended in {time.time() - end:.0f} s")
    status = Path(f"/proc/{discovery.pid}/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    return Measured(begin, end, cpu, peak, max(late), failed, waits)


@contextlib.contextmanager
def asking_from_outside(discovery: Discovery) -> Iterator[list[float]]:
    """Ten posts a second from a caller of its own, for as long as this lasts; how long each took.

    A server that is too busy to look at its sockets does not see what a request waits there.
    """
    connection = Connection(discovery.url, discovery.key)
    words = 'upsertBucket(input: {name: "outside", modelName: "outside"})'
    asked = {"query": f"mutation {{ {words} {{ bucket {{ project {{ entity {{ name }} }} }} }} }}"}
    bucket = connection.post("/graphql", asked)["data"]["upsertBucket"]["bucket"]
    path = f"/files/{bucket['project']['entity']['name']}/outside/outside/file_stream"
    waits: list[float] = []
    ended = threading.Event()

    def ask() -> None:
        while not ended.wait(0.1):
            row = json.dumps({"_step": len(waits), "v": 1.5})
            files = {"wandb-history.jsonl": {"offset": len(waits), "content": [row]}}
            begin = time.perf_counter()
            connection.post(path, {"files": files})
            waits.append(time.perf_counter() - begin)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield waits
    finally:
        ended.set()
        thread.join()


def incomplete(discovery: Discovery, runs: int, seconds: int) -> list[str]:
    """Runs that have not ended well, or of which a step is missing, or there twice."""
    api = connect(discovery)
    found = api.runs(project=PROJECT)
    wrong = [] if len(found) == runs else [f"{len(found)} runs instead of {runs}"]
    for run in found:
        metrics = {series["key"]: series for series in api.metrics(run, points=10**9)}
        kept = metrics.get("step")
        if run["state"] != "finished":
            wrong.append(f"{run['id']} is {run['state']}")
        elif kept is None or not kept["steps"] == kept["values"] == list(range(seconds)):
            wrong.append(f"{run['id']} has {kept['count'] if kept else 0} steps, or others")
    return wrong


def report(measured: Measured, folder: Path, wrong: list[str], runs: int, seconds: int) -> int:
    notes = [json.loads(line) for line in (folder / "notes").read_text().splitlines()]
    posts = [note for note in notes if note[4].endswith("/file_stream") and "/many/" in note[4]]
    within = [took for at, took, *_ in posts if measured.begin <= at <= measured.end]
    refused = Counter(status for _, _, status, *_ in notes if status >= 400 or not status)
    told = client_errors(folder)
    p99 = max(share(within, 99), share(measured.outside, 99))
    wall = measured.end - measured.begin
    print(f"{runs} runs at 1 Hz for {seconds} s, {os.cpu_count()} cores for server and clients")
    print(f"{'':24} {'count':>8} {'p50':>9} {'p99':>9} {'max':>9}")
    for name, times in (
        ("file_stream, at server", within),
        ("file_stream, outside", measured.outside),
        ("graphql, at server", [took for _, took, *_, path in notes if path == "/graphql"]),
    ):
        figures = [1e3 * share(times, part) for part in (50, 99, 100)]
        print(f"{name:24} {len(times):8d}" + "".join(f"{one:7.1f}ms" for one in figures))
    print(f"server: {measured.cpu_seconds / wall:.0%} of one core, {measured.rss_megabytes:.0f} MB")
    print(f"the programs were at most {measured.late:.2f} s behind their clock")
    claims = {
        f"p99 of file_stream under {LIMIT_P99:g} s": p99 < LIMIT_P99,
        "every step of every run stored once": not wrong,
        "no request refused": not refused,
        "no error in a client's log": not told,
        "every program ended well": not measured.failed_processes,
    }
    for claim, held in claims.items():
        print(f"{'held' if held else 'FAILED':6} {claim}")
    for line in [*wrong[:10], *(f"status {one}: {n}" for one, n in refused.items()), *told[:10]]:
        print(f"       {line}")
    return 0 if all(claims.values()) else 1


def client_errors(folder: Path) -> list[str]:
    """What clients logged as an error or a retry, and what they said on stderr."""
    counted = Counter[str]()
    for log in (folder / "wandb").glob("run-*/logs/debug-internal.log"):
        for line in log.read_text().splitlines():
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                if entry.get("level") in ("ERROR", "WARN") or "retry" in entry.get("msg", ""):
                    counted[f"{entry['level']} {entry['msg']}"[:200]] += 1
    for errors in folder.glob("stderr*"):
        counted.update(line[:200] for line in errors.read_text().splitlines() if line.strip())
    return [f"{count} x {text}" for text, count in counted.most_common()]


def share(times: Sequence[float], percent: int) -> float:
    """The time that so many percent did not pass."""
    if len(times) < 2 or percent == 100:
        return max(times, default=float("inf"))
    return statistics.quantiles(times, n=100)[percent - 1]


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
