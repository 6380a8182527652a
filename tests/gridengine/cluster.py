"""A real Grid Engine of one's own on this machine: a new cell, gone without a trace."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

from tests.packages import GRID_ENGINE, ensure_packages, search_path
from tests.slurm import warden
from tests.slurm.daemon import ClusterError, Daemon, end_together
from tests.slurm.ports import reserve_ports

from .config import LIBRARY, QUEUE, SHARE, CellSite, queue_file, scheduling, write_files

POLL_SECONDS = 0.2
# Set inside a job or by a user for another cell, these would steer the commands here.
FOREIGN_SETTINGS = ("SGE_", "JOB_ID", "JOB_NAME")


class GridEngineCell:
    """One master, one host, one queue; from entering the context to leaving it."""

    def __init__(self) -> None:
        self._undo = contextlib.ExitStack()
        self._site: CellSite | None = None

    def __enter__(self) -> GridEngineCell:
        ensure_packages(*GRID_ENGINE)
        try:
            self._start()
        except BaseException:
            self._undo.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._undo.close()

    @property
    def site(self) -> CellSite:
        if self._site is None:
            raise ClusterError("this cell is not running")
        return self._site

    @property
    def env(self) -> dict[str, str]:
        """The environment in which Grid Engine's commands talk to this cell."""
        own = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(FOREIGN_SETTINGS)
        }
        return {**own, "PATH": search_path(), **self.site.variables}

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command in the cell's environment."""
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, check=False)
        if check and done.returncode:
            problem = f"{' '.join(command)} ended with exit code {done.returncode}"
            raise ClusterError(f"{problem}:\n{done.stdout}{done.stderr}")
        return done

    def cancel_jobs(self, timeout: float = 30) -> None:
        """Delete every job and wait for them to be gone, or for the time to be over."""
        deadline = time.monotonic() + timeout
        while self.run("qstat", check=False).stdout.strip() and time.monotonic() < deadline:
            self.run("qdel", "-u", self.site.user, check=False)
            time.sleep(POLL_SECONDS)

    def _start(self) -> None:
        ports = reserve_ports(2)
        self._undo.callback(ports.release)
        folder = Path(tempfile.mkdtemp(prefix="gridengine-"))
        self._undo.callback(shutil.rmtree, folder, ignore_errors=True)
        self._undo.callback(warden.end_processes, folder)
        host, user = socket.gethostname(), pwd.getpwuid(os.geteuid()).pw_name
        self._site = site = CellSite(folder, host, user, ports.first, ports.first + 1)
        write_files(site)
        self._spool_defaults()
        master = self._start_daemon("sge_qmaster")
        master.wait_until(lambda: self.run("qconf", "-sconf", check=False).returncode == 0)
        self._configure()
        execd = self._start_daemon("sge_execd")
        execd.wait_until(self._is_ready)
        self._undo.callback(self.cancel_jobs, timeout=5)

    def _spool_defaults(self) -> None:
        site = self.site
        resources = SHARE / "util" / "resources"
        places = f"{site.common};{site.spool}/qmaster"
        spool = str(LIBRARY / "spooldefaults")
        self.run("env", f"LD_LIBRARY_PATH={LIBRARY}", str(LIBRARY / "spoolinit"), "classic",
                 "libspoolc", places, "init")  # fmt: skip
        self.run(spool, "configuration", str(site.folder / "configuration"))
        self.run(spool, "complexes", str(resources / "centry"))
        self.run(spool, "usersets", str(resources / "usersets"))
        self.run(spool, "managers", site.user)

    def _configure(self) -> None:
        site = self.site
        self.run("qconf", "-as", site.host, check=False)
        changed = scheduling(self.run("qconf", "-ssconf").stdout)
        self._give("-Msconf", changed)
        self.run("qconf", "-Ap", str(SHARE / "util/resources/pe/smp"))
        self.run("qconf", "-ae", site.host, check=False)
        self._give("-Aq", queue_file(site))

    def _give(self, option: str, text: str) -> None:
        file = self.site.folder / "given"
        file.write_text(text)
        self.run("qconf", option, str(file))

    def _start_daemon(self, name: str) -> Daemon:
        log = self.site.folder / f"{name}.log"
        # Without SGE_ND it would leave us for the background.
        env = {**self.env, "SGE_ND": "1"}
        daemon = Daemon.start(name, [str(LIBRARY / name)], env, log)
        self._undo.callback(end_together, [daemon])
        return daemon

    def _is_ready(self) -> bool:
        """Whether the host has told its load: until then its queue takes no jobs."""
        rows = self.run("qstat", "-f", check=False).stdout.splitlines()
        queue = next((row.split() for row in rows if row.startswith(QUEUE)), [])
        # A sixth word is the state: `au` while nothing is known of the host.
        return len(queue) == 5
