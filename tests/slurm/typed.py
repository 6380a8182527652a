"""A project on a cluster, and the commands that a person types there to look after jobs."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runyard.client.discover import find_server
from runyard.home import Home
from tests.conftest import ask_runyard, end_server, isolate, run_runyard
from tests.slurm.cluster import FINAL_STATES, SlurmCluster
from tests.slurm.test_cluster import wait_until

# The third, the thirteenth and the twenty-third fail until they are mended; the first two wait.
PROGRAM = """
import pathlib, sys, time
here, number = pathlib.Path(__file__).parent, int(sys.argv[1])
print("this is task", number, flush=True)
while number <= 2 and not (here / "go").exists():
    time.sleep(0.05)
if number in (3, 13, 23) and not (here / "mended").exists():
    sys.exit("no luck today")
"""

# Works until Slurm has seen it, and is told so. At its end it says what the kernel knows of it.
BUSY = """
import json, pathlib, resource, time
memory, end = bytearray(30 << 20), time.time() + 1
while time.time() < end or not pathlib.Path(__file__).with_name("seen").exists():
    pass
status = pathlib.Path("/proc/self/status").read_text()
used = resource.getrusage(resource.RUSAGE_SELF)
truth = {"peak": int(status.partition("VmHWM:")[2].split()[0]) << 10,
         "cpu": used.ru_utime + used.ru_stime}
pathlib.Path(__file__).with_name("truth.json").write_text(json.dumps(truth))
"""


@dataclass(frozen=True)
class Yard:
    """A project on a cluster, and the commands that a person types there."""

    cluster: SlurmCluster
    project: Path
    home: Home

    def type(self, *words: str, code: int = 0, env: dict[str, str] | None = None) -> str:
        done = run_runyard(*words, cwd=self.project, env=env)
        assert done.returncode == code, done.stderr + done.stdout
        return done.stdout if code == 0 else done.stderr

    def read(self, *words: str, code: int = 0) -> str:
        """What a command shows that changes nothing."""
        done = ask_runyard(*words, cwd=self.project)
        assert done.returncode == code, done.stderr + done.stdout
        return done.stdout if code == 0 else done.stderr

    def json(self, *words: str) -> Any:
        return json.loads(self.read(*words, "--json"))

    def submit(self, name: str, lines: list[str], *more: str) -> tuple[str, str]:
        """A list as an array of agents: the sweep's id, and the job's."""
        (self.project / f"{name}.txt").write_text("\n".join(lines) + "\n")
        words = ("farm", f"{name}.txt", "--on", "slurm", "--yes", "-e", name, *more)
        told = json.loads(self.type(*words, "--json"))
        return told["sweep"], told["jobs"][0]["job_id"]

    def sweep(self, sweep: str) -> Any:
        [found] = self.json("status", sweep)["sweeps"]
        return found

    def wait_for(self, sweep: str, **counts: int) -> None:
        """Until so many trials are in these states, as the server has it."""
        api = find_server(self.home)
        assert api is not None

        def is_so() -> bool:
            found = api.sweeps.find(sweep)["counts"]
            return all(found[state] == count for state, count in counts.items())

        wait_until(is_so, timeout=180)

    def wait_for_memory(self, job: str) -> None:
        """Until Slurm has seen what busy.py holds; it is let go then."""
        wait_until(
            lambda: any((one["memory_peak"] or 0) > 30 << 20 for one in self.running(job)),
            timeout=180,
        )
        (self.project / "seen").touch()

    def running(self, job: str) -> list[Any]:
        found: list[Any] = self.json("status", job, "--live")["jobs"]
        return found

    def wait_for_end(self, job: str) -> None:
        """Until Slurm has done with it, and the server knows."""
        self.cluster.wait_for(job, FINAL_STATES, timeout=180)
        self.read("status", job)


@contextlib.contextmanager
def open_birds(cluster: SlurmCluster, folder: Path) -> Iterator[Yard]:
    with pytest.MonkeyPatch.context() as patch:
        isolate(folder, patch)
        for name in ("SLURM_CONF", "PATH"):
            patch.setenv(name, cluster.env[name])
        project = folder / "birds"
        project.mkdir()
        (project / "task.py").write_text(PROGRAM)
        (project / "busy.py").write_text(BUSY)
        home = Home(folder / "state")
        try:
            yield Yard(cluster, project, home)
        finally:
            cluster.cancel_jobs()
            end_server(home)


def python_line(*words: str) -> str:
    return shlex.join([sys.executable, *words])


def has_accounting(yard: Yard) -> bool:
    return yard.cluster.spec.accounting
