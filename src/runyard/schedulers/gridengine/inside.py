"""What a job of Grid Engine's knows of itself, from inside. The standard library alone."""

from __future__ import annotations

import contextlib
import os
import time

from runyard.schedulers.inside import PATIENCE, JobEnvironment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from xml.etree.ElementTree import Element

_NO_TASK = "undefined"
_CANCEL_SECONDS = 30.0


class Job(JobEnvironment):
    def __init__(self, environ: Mapping[str, str]) -> None:
        super().__init__(environ)
        self.slots = 1
        self.queue: str | None = None
        # JOB_ID alone is a name that others use too.
        if "JOB_ID" not in environ or "SGE_TASK_ID" not in environ:
            return
        self.job_id = environ["JOB_ID"]
        self.task = None if environ["SGE_TASK_ID"] == _NO_TASK else environ["SGE_TASK_ID"]
        self.own_id = self.name
        self.node = environ.get("HOSTNAME") or None
        self.nodes = self._number("NHOSTS", 1)
        # Grid Engine makes it and removes it.
        self.folder = environ.get("TMPDIR") or None
        self.restarts = self._number("RESTARTED", 0)
        self.slots = self._number("NSLOTS", 1)
        self.queue = environ.get("QUEUE")

    def _number(self, name: str, default: int) -> int:
        try:
            return int(self.environ.get(name) or default)
        except ValueError:
            return default

    def hosts(self) -> list[str]:
        """The nodes of a parallel job, the first one first."""
        # HOST SLOTS QUEUE CORES in each line.
        with contextlib.suppress(OSError), open(self.environ.get("PE_HOSTFILE", "")) as file:
            return list(dict.fromkeys(line.split()[0] for line in file if line.strip()))
        return [self.node] if self.node else []

    def first_node(self) -> str | None:
        return next(iter(self.hosts()), None)

    def find_end(self, patience: float = PATIENCE) -> float | None:
        """No variable says it: the queue knows when this task began, and its h_rt."""
        if self.job_id is None:
            return None
        with contextlib.suppress(OSError, ValueError):
            for row in _queue("r", max(patience, PATIENCE)):
                limit = row.findtext("hard_request[@name='h_rt']")
                task = (row.findtext("JB_job_number"), row.findtext("tasks"))
                if task == (self.job_id, self.task) and limit is not None:
                    began = (row.findtext("JAT_start_time") or "").partition(".")[0]
                    return time.mktime(time.strptime(began, "%Y-%m-%dT%H:%M:%S")) + _seconds(limit)
        return None

    def with_folder(self, path: str) -> dict[str, str]:
        return {"TMPDIR": path}

    def cancel_waiting(self, folder: str) -> bool:
        waiting = [
            (row.findtext("JB_job_number") or "", row.findtext("tasks"))
            for row in _queue("p", _CANCEL_SECONDS)
        ]
        jobs = [(job, tasks) for job, tasks in waiting if _folder_of(job) == folder]
        for job, tasks in jobs:
            # Of an array the tasks that wait: others of it may run.
            _ask(_CANCEL_SECONDS, "qdel", job, *(["-t", tasks] if tasks else []))
        return bool(jobs)


def _seconds(text: str) -> float:
    """300, or 0:5:0."""
    seconds = 0.0
    for part in text.split(":"):
        seconds = seconds * 60 + float(part or 0)
    return seconds


def _folder_of(job: str) -> str | None:
    """The working folder of a job in the queue."""
    for line in _ask(_CANCEL_SECONDS, "qstat", "-j", job).splitlines():
        name, _, value = line.partition(":")
        if name == "cwd":
            return value.strip()
    return None


def _queue(states: str, seconds: float) -> list[Element]:
    """The user's own jobs in these states; OSError where the master does not tell."""
    import pwd
    from xml.etree import ElementTree

    user = pwd.getpwuid(os.geteuid()).pw_name
    try:
        # The master's own words, about the user's own jobs.
        answer = ElementTree.fromstring(  # noqa: S314 - Of qstat.
            _ask(seconds, "qstat", "-u", user, "-s", states, "-r", "-xml")
        )
    except ElementTree.ParseError as error:
        raise OSError(f"qstat printed no XML: {error}") from error
    return list(answer.iter("job_list"))


def _ask(seconds: float, *words: str) -> str:
    import subprocess

    try:
        return subprocess.run(
            words, capture_output=True, text=True, errors="replace", timeout=seconds, check=True
        ).stdout
    except subprocess.SubprocessError as error:
        raise OSError(str(error)) from error
