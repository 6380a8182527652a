"""A project on the rig: runyard's own commands typed there, and what became of their jobs."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.home import Home
from runyard.shapes.sweeps import Sweep
from tests.conftest import end_server, isolate, run_runyard
from tests.live.sweeping import with_python
from tests.node.terminals import until
from tests.slurm.cluster import SlurmCluster

# What people do to folders: every one of these has broken somebody's submit script.
HOSTILE = 'it\'s a "mess", ü\n${HOME}; $(false) `x` %j #'


@contextlib.contextmanager
def open_yard(
    folder: Path,
    environment: pytest.MonkeyPatch,
    cluster: SlurmCluster,
    name: str = "project",
) -> Iterator[Yard]:
    """A project and a state folder below `folder`; afterwards no job and no server is left."""
    folder.mkdir(exist_ok=True)
    isolate(folder, environment)
    project = folder / name
    project.mkdir()
    home = Home(folder / "state")
    try:
        yield Yard(home, cluster, project)
    finally:
        cluster.cancel_jobs()
        end_server(home)


@dataclass(frozen=True)
class Yard:
    """A project's folder, a state folder and a cluster."""

    home: Home
    cluster: SlurmCluster
    project: Path

    def type(
        self, *words: str, check: bool = True, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Type a runyard command in the project's folder."""
        slurm = {name: self.cluster.env[name] for name in ("SLURM_CONF", "PATH")}
        python = with_python()["PATH"].partition(":")[0]
        done = run_runyard(
            *words,
            env={**slurm, "PATH": f"{python}:{slurm['PATH']}", **(env or {})},
            cwd=self.project,
        )
        assert not check or done.returncode == 0, done.stderr
        return done

    def submit(self, *words: str, env: dict[str, str] | None = None) -> dict[str, Any]:
        """Type a command that submits; what it says as JSON."""
        said: dict[str, Any] = json.loads(self.type(words[0], "--json", *words[1:], env=env).stdout)
        return said

    @property
    def api(self) -> Api:
        return ensure_server(self.home).api

    def ended(self, sweep: str, seconds: float = 180) -> Sweep:
        """The sweep, when it is over."""

        def found() -> Sweep:
            return self.api.sweeps.find(sweep)

        until(lambda: found()["state"] != "running", lambda: f"its end: {found()}", seconds)
        return found()

    def logs(self, said: dict[str, Any]) -> str:
        """All that the jobs of a submission have printed."""
        pattern = Path(said["logs"])
        files = [
            file
            for job in said["jobs"]
            for name in (pattern.name.replace("%A_%a", f"{job['job_id']}_*"),)
            for file in pattern.parent.glob(re.sub(r"%j.*$", f"{job['job_id']}*.log", name))
        ]
        return "".join(file.read_text() for file in sorted(files))

    def write(self, name: str, text: str) -> Path:
        file = self.project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def batch_shells(self, *variables: str) -> list[int]:
        """The same, of this cluster alone."""
        return batch_shells(f"SLURM_CONF={self.cluster.env['SLURM_CONF']}", *variables)


def batch_shells(*variables: str) -> list[int]:
    """The processes that run a job's script, told by what is in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            is_script = b"slurm_script" in (process / "cmdline").read_bytes()
            environ = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if is_script and all(one.encode() in environ for one in variables):
            found.append(int(process.name))
    return found
