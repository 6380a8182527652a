"""A real Slurm of one's own on this machine, up in seconds and gone without a trace."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from types import TracebackType

from tests.packages import ensure_packages, search_path, slurm_packages

from . import warden
from .config import ClusterSite, ClusterSpec
from .daemon import START_SECONDS, ClusterError
from .daemons import ClusterDaemons
from .layout import make_folder, write_files
from .ports import reserve_ports

__all__ = ["ClusterError", "ClusterSpec", "SlurmCluster"]

POLL_SECONDS = 0.1
PATIENT_SECONDS = 0.3
# Slurm gives a job that ignores SIGTERM 5 s or more; what is still there then dies anyway.
STOP_JOBS_SECONDS = 2.0
JOB_LINES_SHOWN = 60

# A job in one of these does not move again by itself.
FINAL_STATES = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "TIMEOUT",
    }
)
# Set inside a job or by a user for another cluster, these would steer the commands here.
FOREIGN_SETTINGS = ("SLURM_", "SBATCH_", "SRUN_", "SALLOC_", "SQUEUE_", "SINFO_", "SACCT_")


class SlurmCluster:
    """Runs from entering its context to leaving it, or from `start` to `stop`.

    If the process that started it ends without `stop`, even by SIGKILL, the cluster's daemons and
    jobs are ended and its folder is removed all the same.
    """

    def __init__(self, spec: ClusterSpec | None = None) -> None:
        self.spec = spec or ClusterSpec()
        self._site: ClusterSite | None = None
        self._daemons: ClusterDaemons | None = None
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> SlurmCluster:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def folder(self) -> Path:
        """Everything the cluster writes is in here."""
        return self._running_site().folder

    @property
    def name(self) -> str:
        """What Slurm calls it."""
        return self._running_site().cluster_name

    @property
    def env(self) -> dict[str, str]:
        """The environment in which Slurm's commands talk to this cluster."""
        own = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(FOREIGN_SETTINGS)
        }
        return {**own, "PATH": search_path(), "SLURM_CONF": str(self.folder / "slurm.conf")}

    def start(self) -> None:
        """Install what is missing, start every daemon and return once all nodes are idle."""
        if self._site:
            raise ClusterError("this cluster is already running")
        ensure_packages(*slurm_packages(accounting=self.spec.accounting))
        self._undo.callback(setattr, self, "_site", None)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Cancel the jobs, end every process of the cluster and remove its folder."""
        self._undo.close()

    def give_power(self) -> None:
        """Let the nodes of an elastic cluster start that jobs wait for."""
        self._running_site().power.touch()

    def run(
        self, *command: str, check: bool = True, cwd: Path | None = None, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the cluster's environment."""
        done = subprocess.run(
            command, env=self.env, cwd=cwd, input=stdin, capture_output=True, text=True, check=False
        )
        if check and done.returncode:
            problem = f"{' '.join(command)} ended with exit code {done.returncode}"
            raise ClusterError(f"{problem}:\n{done.stdout}{done.stderr}")
        return done

    def submit(self, script: str, *sbatch_arguments: str) -> str:
        """Submit a batch script and return the job's id; its output goes to `output`."""
        if not script.startswith("#!"):
            script = f"#!/bin/sh\n{script}"
        done = self.run(
            "sbatch", "--parsable", *sbatch_arguments, stdin=script, cwd=self._running_site().work
        )
        return done.stdout.strip().partition(";")[0]

    def output(self, job_id: str) -> str:
        """What a job has printed, unless it was told to print elsewhere."""
        return (self._running_site().work / f"slurm-{job_id}.out").read_text()

    def show_job(self, job_id: str) -> list[dict[str, str]]:
        """What scontrol says about a job: a record for each task of an array, else just one."""
        said = self.run("scontrol", "--oneliner", "show", "job", job_id).stdout
        # Not by lines: a folder's name may hold one's end.
        records = re.split(r"^(?=JobId=)", said, flags=re.MULTILINE)
        return [dict(re.findall(r"(\S+?)=(\S*)", one)) for one in records if one.strip()]

    def wait_for(
        self, job_id: str, states: str | Collection[str], timeout: float = 180
    ) -> list[dict[str, str]]:
        """Wait until every task of a job is in one of these states; return `show_job`."""
        wanted = {states} if isinstance(states, str) else set(states)
        first = time.monotonic()
        deadline = first + timeout
        while True:
            began = time.monotonic()
            records = self.show_job(job_id)
            seen = {record["JobState"] for record in records}
            if seen <= wanted:
                return records
            if time.monotonic() > deadline or seen & (FINAL_STATES - wanted):
                said = "".join(map(_last_words, records))
                raise ClusterError(f"job {job_id} is {seen}, not {wanted}: {records}{said}")
            # To ask is work for two cores as well, where many do.
            now = time.monotonic()
            patient = min(PATIENT_SECONDS, (now - first) / 60)
            time.sleep(max(POLL_SECONDS, patient, 2 * (now - began)))

    def cancel_jobs(self, timeout: float = 60) -> None:
        """Cancel every job and wait for them to be gone, or for the time to be over."""
        deadline = time.monotonic() + timeout
        cancelled: set[str] = set()
        while job_ids := set(self.run("squeue", "-h", "-o", "%A", check=False).stdout.split()):
            # Asking twice would give a job that ignores SIGTERM its grace time anew.
            if job_ids - cancelled:
                self.run("scancel", *(job_ids - cancelled), check=False)
                cancelled |= job_ids
            if time.monotonic() > deadline:
                return
            time.sleep(POLL_SECONDS)

    @contextlib.contextmanager
    def without_controller(self) -> Iterator[None]:
        """slurmctld is killed with -9; afterwards it is there again."""
        daemons = self._running_daemons()
        daemons.find("slurmctld").kill()
        try:
            yield
        finally:
            daemons.start_again("slurmctld")
            self._wait_for_nodes(daemons, states="idle,alloc,mix,comp,down")

    @contextlib.contextmanager
    def stopped_controller(self) -> Iterator[Callable[[], None]]:
        """slurmctld stands still, and what it is asked piles up; calling what is given lets it go
        on, and so does the end."""
        pid = self._running_daemons().find("slurmctld").process.pid

        def go_on() -> None:
            os.kill(pid, signal.SIGCONT)

        os.kill(pid, signal.SIGSTOP)
        try:
            yield go_on
        finally:
            go_on()

    @contextlib.contextmanager
    def without_node(self, name: str) -> Iterator[None]:
        """A node loses its power: slurmd and all that runs there is killed with -9; afterwards the
        node is there again."""
        daemons = self._running_daemons()
        daemons.find(f"slurmd {name}").kill()
        while there := warden.processes_with(f"SLURMD_NODENAME={name}", self.folder):
            for pid in there:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        try:
            yield
        finally:
            daemons.start_again(f"slurmd {name}")
            self.run("scontrol", "update", f"nodename={name}", "state=resume", check=False)
            self._wait_for_nodes(daemons, states="idle,alloc,mix,comp")

    def _running_daemons(self) -> ClusterDaemons:
        if self._daemons is None:
            raise ClusterError("this cluster is not running")
        return self._daemons

    def _start(self) -> None:
        ports = reserve_ports(self.spec.ports_needed)
        self._undo.callback(ports.release)
        folder = make_folder()
        self._undo.callback(shutil.rmtree, folder, ignore_errors=True)
        guard = _start_warden(folder)
        self._undo.callback(_end_warden, guard)
        self._undo.callback(warden.end_processes, folder, spare={guard.pid})
        self._site = ClusterSite(folder, _short_host_name(), _user_name(), ports.first)
        write_files(self.spec, self._site)
        self._daemons = daemons = ClusterDaemons(self.spec, self._site, self.env)
        self._undo.callback(daemons.stop)
        daemons.start()
        self._wait_for_nodes(daemons)
        self._undo.callback(self.cancel_jobs, timeout=STOP_JOBS_SECONDS)

    def _wait_for_nodes(self, daemons: ClusterDaemons, states: str = "idle") -> None:
        deadline = time.monotonic() + START_SECONDS
        while self._count_nodes(states) < self.spec.nodes:
            daemons.check_alive()
            if time.monotonic() > deadline:
                raise ClusterError(f"not all nodes are idle:\n{self.run('sinfo', '-lN').stdout}")
            time.sleep(POLL_SECONDS)

    def _count_nodes(self, states: str) -> int:
        words = ("sinfo", "-h", "-N", "-t", states, "-o", "%N")
        return len(set(self.run(*words, check=False).stdout.split()))

    def _running_site(self) -> ClusterSite:
        if self._site is None:
            raise ClusterError("this cluster is not running")
        return self._site


def _start_warden(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", warden.__file__, str(os.getpid()), str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        # What ends the owner's process group must not end the one who cleans up after it.
        start_new_session=True,
    )


def _end_warden(guard: subprocess.Popen[bytes]) -> None:
    guard.kill()
    guard.wait()


def _last_words(record: dict[str, str]) -> str:
    """The end of what a job has printed, where its file's name can be read from its record."""
    log = Path(record.get("StdOut", ""))
    if not log.is_file():
        return ""
    lines = log.read_text(errors="replace").splitlines()[-JOB_LINES_SHOWN:]
    return "".join(f"\n  {line}" for line in (f"{log}:", *lines))


def _short_host_name() -> str:
    return socket.gethostname().partition(".")[0]


def _user_name() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name
