"""A stranger binds the port of a killed server and records all that he is sent, while stock clients
log: he gets no key that opens anything, and the runs are whole."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from runyard.client.discover import ensure_server, find_server
from runyard.home import Discovery, Home, read_discovery
from runyard.node.attempt.wandb_file import files_of, read_rows
from tests.conftest import (
    end_server,
    holder_pids,
    isolate,
    run_runyard,
    server_pids,
    wait_until,
)
from tests.environments import skip_or_fail
from tests.live.programs import curves
from tests.server.asgi import basic
from tests.strangers import Stranger
from tests.wandb_clients.environments import MissingClient, ensure_environment

pytestmark = pytest.mark.clients

VERSIONS = ("0.31.0", "0.16.6")
STEPS = 6
# As any web server answers to what it does not know.
UNKNOWN = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
PROGRAM = f"""
import pathlib, sys, time, wandb
folder = pathlib.Path(sys.argv[1])
def start():
    return wandb.init(project="taken", id=sys.argv[2])
try:
    run = start()
except Exception as error:
    # Up to 0.17, on a busy machine: the client asks its own service before that listens.
    if type(error).__name__ != "ManagerConnectionRefusedError":
        raise
    run = start()
for step in range({STEPS}):
    while not (folder.parent / f"go-{{step}}").exists():
        time.sleep(0.05)
    run.log({{"value": step * step}})
    (folder / f"done-{{step}}").touch()
run.finish()
"""


class Logging:
    """A program of one version of the client, in a shell or by `runyard run`."""

    def __init__(self, folder: Path, version: str, *, is_direct: bool) -> None:
        self.run_id = f"{'shell' if is_direct else 'run'}-{version.replace('.', '')}"
        self.folder = folder / self.run_id
        self.folder.mkdir()
        script = self.folder / "train.py"
        script.write_text(PROGRAM)
        python = ensure_environment(version)
        words = [str(python), str(script), str(self.folder), self.run_id]
        own = {"WANDB_DIR": str(self.folder), "WANDB_SILENT": "true"}
        if is_direct:
            shown = run_runyard("env", "--json")
            assert shown.returncode == 0, shown.stderr
            own |= json.loads(shown.stdout)
        else:
            words = [sys.executable, "-m", "runyard", "run", "-q", "--", *words]
            own |= {"WANDB_RUN_ID": self.run_id, "WANDB_PROJECT": "taken"}
        self.key = own.get("WANDB_API_KEY", "")
        self.output = self.folder / "output"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                words, env={**os.environ, **own}, cwd=self.folder, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            )  # fmt: skip

    def has_logged(self, step: int) -> bool:
        assert self.process.poll() in (None, 0), self.output.read_text()
        return (self.folder / f"done-{step}").exists()

    def rows_on_disk(self) -> int:
        (path,) = files_of(str(self.folder), self.run_id)
        return sum(1 for _ in read_rows(path))

    def end(self) -> None:
        """As somebody does who has waited long enough for a client that cannot send."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    isolate(tmp_path, monkeypatch)
    home = Home(tmp_path / "state")
    yield home
    end_server(home)


def found(home: Home) -> Discovery:
    discovery = read_discovery(home)
    assert discovery is not None
    return discovery


def opens(home: Home, key: str, path: str) -> int:
    """How the live server answers to a key."""
    with closing(HTTPConnection("127.0.0.1", found(home).port, timeout=60)) as connection:
        connection.request("GET", path, headers={"Authorization": basic(key)})
        return connection.getresponse().status


def kill_with_holder(home: Home) -> None:
    pids = (*server_pids(home), *holder_pids(home))
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    # A killed process has no command any more while its threads still write, with its port open.
    wait_until(lambda: not any(map(has_threads, pids)))


def has_threads(pid: int) -> bool:
    """Whether anything of a process is left but a zombie."""
    states = list[str]()
    for stat in Path("/proc", str(pid), "task").glob("*/stat"):
        with contextlib.suppress(OSError):
            states.append(stat.read_text().rpartition(")")[2].split()[0])
    return any(state not in "ZX" for state in states)


def test_the_stranger_gets_no_key_that_opens_anything_and_the_runs_are_whole(
    home: Home, tmp_path: Path
) -> None:
    ensure_server(home)
    before = found(home)
    try:
        programs = [
            Logging(tmp_path, version, is_direct=is_direct)
            for version in VERSIONS
            for is_direct in (True, False)
        ]
    except MissingClient as missing:
        skip_or_fail(str(missing))
    wait_until(lambda: holder_pids(home))

    def log(step: int) -> None:
        (tmp_path / f"go-{step}").touch()
        wait_until(lambda: all(program.has_logged(step) for program in programs))

    try:
        log(0)
        log(1)
        kill_with_holder(home)
        with Stranger(before.port, answer=UNKNOWN) as stranger:
            log(2)
            wait_until(lambda: {p.key for p in programs if p.key} <= stranger.keys)
            # `runyard run` brings the server back; it may have done so already.
            ensure_server(home)
            log(3)
            log(4)
            log(5)
            assert found(home).port != before.port
            behind_doors = [program for program in programs if not program.key]
            wait_until(lambda: all(program.process.poll() == 0 for program in behind_doors))
            # The others give up; what they have logged is on disk when they end.
            wait_until(lambda: all(program.process.poll() is not None for program in programs))
            wait_until(lambda: all(p.rows_on_disk() == STEPS for p in programs if p.key))
            keys = stranger.keys
    finally:
        for program in programs:
            program.end()
    assert before.key not in keys
    assert before.key.encode() not in stranger.heard
    for key in keys:
        for path in ("/api/health", "/api/runs", "/api/keys"):
            assert opens(home, key, path) == 401
    status = run_runyard("server", "status")
    assert f"another program took port {before.port}" in status.stderr + status.stdout
    for program in programs:
        if "shell" in program.run_id:
            synced = run_runyard("sync", *map(str, program.folder.glob("wandb/run-*")))
            assert synced.returncode == 0, synced.stderr
        stored = curves(home, program.run_id)["value"]["values"]
        assert stored == [step * step for step in range(STEPS)], program.run_id


def test_commands_and_agents_of_another_node_send_the_stranger_nothing(home: Home) -> None:
    """The state folder names another machine, at whose address a stranger answers."""
    ensure_server(home)
    before = found(home)
    kill_with_holder(home)
    record = json.loads(home.discovery.read_text())
    with Stranger(before.port) as stranger:
        home.discovery.write_text(
            json.dumps({**record, "hostname": "another-node", "listen": "0.0.0.0"})
        )
        assert find_server(home) is None
        agent = subprocess.Popen(
            [sys.executable, "-m", "runyard.node.agent", "--sweep", "1"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            asked = stranger.connections
            wait_until(lambda: stranger.connections > asked + 2)
        finally:
            agent.kill()
            agent.wait()
        assert stranger.heard.count(b"GET /api/proof") >= 3
        assert stranger.keys == set()
        assert before.key.encode() not in stranger.heard
