"""One version of the client, set up to log to the server of this session."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from runyard.client.api import Api
from runyard.client.discover import connect
from runyard.home import Discovery
from runyard.shapes.runs import Console, RunDetail, Series
from tests.node.terminals import until
from tests.wandb_clients.versions import ordered

COLOUR = re.compile(r"\x1b\[[0-9;]*m")

_PROGRAMS = Path(__file__).parent / "flows"
_LONGEST = 300
# An agent has several runs one after the other, and looks for the next every five seconds.
_LONGEST_AGENT = 600


class Ended(Exception):
    """A program of a flow ended otherwise than it should."""


class Program:
    """A process of the client's. Its words go to a file: what it leaves behind may hold a pipe."""

    def __init__(
        self, command: list[str], folder: Path, environment: dict[str, str], longest: float
    ) -> None:
        self._longest = longest
        folder.mkdir(parents=True, exist_ok=True)
        self._words = folder / f"{time.monotonic_ns()}.log"
        with self._words.open("w") as words:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def said(self) -> str:
        return self._words.read_text(errors="replace")

    def wait_for(self, word: str) -> None:
        wait_until(lambda: word in self.said() or self._process.poll() is not None, 180)
        if word not in self.said():
            raise Ended(f"ended before it said {word!r}: {_tail(self.said())}")

    def wait_until(self, is_so: Callable[[], object], seconds: float) -> None:
        """Wait for something that it brings about."""
        try:
            wait_until(lambda: is_so() or self.has_ended(), seconds)
        except Ended as error:
            raise Ended(f"{error}: {_tail(self.said())}") from error
        if not is_so():
            raise Ended(f"ended before: {_tail(self.said())}")

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def end(self, code: int | None = 0) -> str:
        """Wait for the end, with that exit code or, for None, with any that is no success."""
        try:
            found = self._process.wait(timeout=self._longest)
        except subprocess.TimeoutExpired as error:
            raise Ended(f"still there after {self._longest} s: {_tail(self.said())}") from error
        if found != code if code is not None else found == 0:
            raise Ended(f"exit code {found}, not {code}: {_tail(self.said())}")
        return self.said()

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        """kill -9 of this process alone; what it started lives on."""
        self._process.kill()
        self._process.wait()

    def clear_away(self) -> None:
        """It and what it started, which older clients leave behind when they die.

        By session: an agent's runs have process groups of their own.
        """
        shown = subprocess.run(
            ["ps", "-A", "-o", "sess=,pid="], capture_output=True, text=True, check=True
        ).stdout
        pairs = [line.split() for line in shown.splitlines()]
        for pid in [int(pid) for session, pid in pairs if session == str(self._process.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()


@dataclass(frozen=True)
class Client:
    """A client version with a folder and a project of its own."""

    version: str
    python: Path
    server: Discovery
    entity: str
    folder: Path
    project: str
    environment: Mapping[str, str] = field(default_factory=dict)

    def has_missed_itself(self) -> bool:
        """Up to 0.17, on a busy machine: its process is there before its own service listens."""
        said = [words.read_text(errors="replace") for words in self.folder.glob("*.log")]
        signs = ("Connection to wandb service failed", "ManagerConnectionRefusedError")
        return any(sign in words for words in said for sign in signs)

    def is_at_least(self, version: str) -> bool:
        return ordered(self.version) >= ordered(version)

    @cached_property
    def api(self) -> Api:
        return connect(self.server)

    @cached_property
    def key(self) -> str:
        """As a shell has it: for runs only."""
        return self.api.people.shell_key(f"wandb {self.version}", None)

    def run(self, program: str, *words: str, code: int = 0) -> str:
        """Run a program of `flows/` to its end; gives what it printed."""
        with self.start(program, *words) as process:
            return process.end(code)

    def start(self, program: str, *words: str) -> AbstractContextManager[Program]:
        """Start a program of `flows/`; it is gone afterwards in any case."""
        return self._start(str(_PROGRAMS / f"{program}.py"), *words)

    def wandb(self, *words: str, code: int | None = 0) -> str:
        """The client's own command line."""
        with self._start("-m", "wandb", *words) as process:
            return process.end(code)

    def sweep(self, config: dict[str, Any], *words: str) -> str:
        """Hand a sweep file to `wandb sweep`; gives the id that it prints."""
        return read_sweep_id(self.wandb("sweep", *words, self.write_sweep(config)))

    def write_sweep(self, config: dict[str, Any]) -> str:
        """A sweep file; where it names a program, one of `flows/`."""
        program = config.get("program")
        named = {} if program is None else {"program": str(_PROGRAMS / f"{program}.py")}
        path = self.folder / f"sweep-{time.monotonic_ns()}.yaml"
        self.folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**config, **named}))  # JSON is YAML.
        return str(path)

    def agent(self, sweep: str, *words: str) -> AbstractContextManager[Program]:
        """Start `wandb agent`; it and its runs are gone afterwards in any case."""
        return self._start("-m", "wandb", "agent", *words, self.path_of(sweep))

    def start_agent(self, sweep: str) -> Program:
        """The same, for who clears it away."""
        return self._program("-m", "wandb", "agent", self.path_of(sweep))

    def start_scheduler(self, sweep: str) -> Program:
        """Start `wandb sweep-scheduler`, for who clears it away."""
        pace = ("--batch-size", "2", "--poll-interval", "1")
        return self._program("-m", "wandb", "sweep-scheduler", *pace, self.path_of(sweep))

    def path_of(self, sweep: str) -> str:
        return f"{self.entity}/{self.project}/{sweep}"

    @contextmanager
    def _start(self, *words: str) -> Iterator[Program]:
        program = self._program(*words)
        try:
            yield program
        finally:
            program.clear_away()

    def _program(self, *words: str) -> Program:
        longest = _LONGEST_AGENT if {"agent", "sweep-scheduler"} & set(words) else _LONGEST
        command = [str(self.python), *words]
        return Program(command, self.folder, self._environment(), longest)

    def _environment(self) -> dict[str, str]:
        ours = ("LANG", "TMPDIR", "SSL_CERT_FILE", "LIGHT_STARTS")
        return {
            **{name: os.environ[name] for name in ours if name in os.environ},
            # Agents start runs with the `python` that they find there.
            "PATH": f"{self.python.parent}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "PYTHONUNBUFFERED": "1",
            "WANDB_BASE_URL": self.server.url,
            "WANDB_API_KEY": self.key,
            "WANDB_ENTITY": self.entity,
            "WANDB_PROJECT": self.project,
            "WANDB_DIR": str(self.folder),
            "WANDB_ERROR_REPORTING": "false",
            "WANDB_DISABLE_GIT": "true",
            "WANDB_X_SAVE_REQUIREMENTS": "true",
            # Its own service may take longer than 30 s to start on a busy machine.
            "WANDB__SERVICE_WAIT": "300",
            # What `runyard run` sets; and samples of the machine within a short run's life.
            "WANDB_X_FILE_STREAM_TRANSMIT_INTERVAL": "2",
            "WANDB_X_STATS_SAMPLING_INTERVAL": "1",
            "WANDB__STATS_SAMPLE_RATE_SECONDS": "1",
            "WANDB__STATS_SAMPLES_TO_AVERAGE": "1",
            **self.environment,
        }

    def stored(self, run_id: str) -> RunDetail:
        """A run of this flow, as the server has it."""
        return self.api.run(f"{self.entity}/{self.project}/{run_id}")

    def only_run(self) -> RunDetail:
        (run,) = self.api.runs(project=f"{self.entity}/{self.project}")
        return self.stored(run["id"])

    def series(self, run_id: str) -> dict[str, Series]:
        """Every stored point of every metric."""
        found = self.api.metrics(self.stored(run_id), points=10**6)
        return {series["key"]: series for series in found}

    def console(self, run_id: str) -> str:
        page: Console = self.api.console(self.stored(run_id))
        return page["text"]

    def file(self, run_id: str, name: str) -> bytes:
        """The content of a file that a run uploaded."""
        return self._ask(f"/files/{self.entity}/{self.project}/{run_id}/{name}", None)

    def bucket(self, run_id: str, fields: str) -> dict[str, Any]:
        """Fields of a run as a client asks for them."""
        query = f"query Q($e: String, $p: String, $r: String!) {{ model(name: $p, entityName: $e) {{ bucket(name: $r) {{ {fields} }} }} }}"  # noqa: E501
        data = self.graphql(query, e=self.entity, p=self.project, r=run_id)
        bucket: dict[str, Any] = data["model"]["bucket"]
        return bucket

    def graphql(self, query: str, **variables: Any) -> dict[str, Any]:
        body = json.dumps({"query": query, "variables": variables}).encode()
        reply = json.loads(self._ask("/graphql", body))
        assert "errors" not in reply, reply["errors"]
        data: dict[str, Any] = reply["data"]
        return data

    def _ask(self, path: str, body: bytes | None) -> bytes:
        login = b64encode(f"api:{self.key}".encode()).decode()
        headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.server.url}{path}", body, headers)
        with urllib.request.urlopen(request, timeout=180) as reply:
            content: bytes = reply.read()
        return content


def read_sweep_id(said: str) -> str:
    found = re.search(r"sweep with ID: (\w+)", COLOUR.sub("", said))
    if found is None:
        raise Ended(f"no sweep was made: {_tail(said)}")
    return found[1]


def wait_until(is_so: Callable[[], object], seconds: float = 180) -> None:
    try:
        until(is_so, "it to be so", seconds)
    except AssertionError as error:
        raise Ended(str(error)) from error


def _tail(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-25:])
