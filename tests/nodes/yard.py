"""A project in the common folder of a rig: runyard typed on its hosts."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runyard.home import Home
from runyard.owners import HEARTBEAT

from .rig import Rig

# What a server has of all its runs: parameters, state, and the rows that were logged.
_TELL = """
import json, sys
from pathlib import Path
from runyard.client.discover import ensure_server
from runyard.home import Home
api = ensure_server(Home(Path(sys.argv[1]))).api
runs = [api.run(run["id"]) for run in api.runs()]
print(json.dumps([
    {"lr": run["config"].get("lr"), "state": run["state"],
     "rows": [(row["_step"], row["value"]) for row in api.rows(run)],
     "attempts": [(attempt["node"], attempt["started_at"], attempt["ended_at"])
                  for attempt in run["attempts"]],
     "causes": [attempt["cause"] for attempt in run["attempts"]]} for run in runs]))
"""


@contextlib.contextmanager
def open_yard(rig: Rig, name: str, settings: Mapping[str, str] | None = None) -> Iterator[Yard]:
    """A new project; afterwards none of its servers and no job is left."""
    yard = Yard(rig, name, settings or {})
    try:
        yield yard
    finally:
        rig.run("login", "scancel", "--me", check=False)
        for host in rig.plan.hosts:
            rig.run(host, "pkill", "-KILL", "-f", f"{rig.home}/{name}/", check=False)


@dataclass(frozen=True)
class Yard:
    """A project's folder and a state folder that all hosts see."""

    rig: Rig
    name: str
    settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.project.mkdir(parents=True)

    @property
    def project(self) -> Path:
        """From this machine."""
        return self.rig.disk / self.name / "project"

    @property
    def home(self) -> Home:
        """From this machine: to be read only, its locks are no host's."""
        return Home(self.rig.disk / self.name / "state")

    @property
    def folder(self) -> Path:
        """HOME, as hosts name it."""
        return self.rig.home / self.name

    @property
    def env(self) -> dict[str, str]:
        python = str(Path(sys.executable).parent)
        state = self.folder / "state"
        path = f"{python}:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
        # A dead server's claim is taken over after ten of these; a starved machine beats late.
        own = {"RUNYARD_HOME": str(state), "PATH": path, HEARTBEAT: "0.7", "HOME": str(self.folder)}
        return {**own, **self.settings}

    def start(self, host: str, *words: str, output: int = subprocess.PIPE) -> subprocess.Popen[str]:
        cwd = self.folder / "project"
        command = (sys.executable, "-m", "runyard", *words)
        return self.rig.start(host, *command, cwd=cwd, env=self.env, output=output)

    def ask(self, host: str, *words: str, timeout: float = 180) -> tuple[int, str]:
        """Exit code and output of a command that was typed on a host."""
        process = self.start(host, *words)
        output, _ = process.communicate(timeout=timeout)
        return process.returncode, output

    def type(self, host: str, *words: str) -> str:
        code, output = self.ask(host, *words)
        assert code == 0, f"{host}: runyard {' '.join(words)}: {output}"
        return output

    def servers(self) -> list[str]:
        """The hosts on which a server of this state folder runs."""
        return [host for host in self.rig.plan.hosts for _ in self.server_pids(host)]

    def server_pids(self, host: str) -> list[str]:
        return self.rig.ask(host, "pgrep", "-f", f"runyard.server --home {self.folder}/")[1].split()

    def kill_server(self, host: str) -> None:
        pattern = f"runyard.server --home {self.folder}/"
        self.rig.run(host, "pkill", "-KILL", "-f", pattern)

    def runs(self, host: str) -> list[dict[str, Any]]:
        """Of the server, asked on a host: `lr`, `state`, `rows`, `attempts` and `causes` of each
        run."""
        words = (sys.executable, "-c", _TELL, self.env["RUNYARD_HOME"])
        runs: list[dict[str, Any]] = json.loads(self.rig.run(host, *words, env=self.env))
        return runs

    def logs(self) -> str:
        """All that its jobs have printed."""
        files = (self.rig.disk / self.name).rglob("hpc_outputs/*.log")
        return "".join(file.read_text(errors="replace") for file in files)

    def write(self, name: str, text: str) -> None:
        (self.project / name).write_text(text)
