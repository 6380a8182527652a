"""Builds an environment once: here, or in a job of its own that is waited for.

A lock keeps two builds of the same apart; the second finds it done. A build that was killed left no
marker, and what it left is removed before it is made anew: nothing half done is ever used.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.errors import RunyardError, StateError
from runyard.home import write_whole
from runyard.launch.builds import Build
from runyard.launch.containers import CONTAINERS
from runyard.launch.own_jobs import OwnJob, own_script, submit_own
from runyard.launch.shell_words import quote
from runyard.locks import FolderLock
from runyard.schedulers.choice import cluster
from runyard.schedulers.errors import SchedulerError
from runyard.schedulers.protocol import POLL_SECONDS

if TYPE_CHECKING:
    from runyard.config.request import Request

# Whether the environment is there costs a look at a file; how the job stands, the scheduler's time.
_LOOK_EVERY = 2.0
_LOOKS_A_POLL = math.ceil(POLL_SECONDS / _LOOK_EVERY)
_CPUS, _MEMORY, _SECONDS = 1, 10_240, 3600.0
_LAST_LINES = 5


class BuildError(RunyardError):
    """The environment could not be built."""


@dataclass(frozen=True)
class Builder:
    """Where runyard itself is, for a build in a job."""

    python: str
    source: str
    home: Path
    remember: Callable[[str, str], None] = lambda _job, _folder: None
    """Told of a build's job and its folder."""


def is_built(build: Build) -> bool:
    has_file = build.kind not in CONTAINERS or not CONTAINERS[build.kind].has_names
    return build.marker.exists() and (not has_file or build.folder.exists())


def build_here(build: Build, say: Callable[[str], None], *, shell: str = "/bin/bash") -> None:
    """Run the steps, unless somebody else does or has; BuildError with the tool's last words."""
    _make(build.folder.parent)
    log = build.folder.with_name(f"{build.folder.name}.log")
    with FolderLock(build.folder.with_name(f"{build.folder.name}.lock")) as lock:
        if not lock.acquire():
            say(f"another build of {build.folder.name} is under way: waiting for it")
            while not lock.acquire(_LOOK_EVERY):
                pass
        if is_built(build):
            return
        _remove(build.folder)
        try:
            write_wanted(build)
            begun = time.monotonic()
            code = _run(build, log, shell, lock)
            if code:
                _remove(build.folder)
                raise BuildError(
                    f"the environment of {build.source} could not be built (exit code {code})",
                    said=_last_words(log),
                    mend=f"the whole story is in {log}",
                )
            note = {"source": build.source, "built_at": time.time(),
                    "seconds": time.monotonic() - begun}  # fmt: skip
            write_whole(build.marker, json.dumps(note) + "\n")
        except OSError as error:
            raise _unwritable(build.folder, error) from error


def write_wanted(build: Build) -> None:
    """What the steps read, where it is no file of the project."""
    if build.wanted is not None:
        _make(build.folder.parent)
        write_whole(build.wanted_file, build.wanted)


def _run(build: Build, log: Path, shell: str, lock: FolderLock) -> int:
    # Of an environment that is active now, nothing may get into the new one.
    dropped = ("VIRTUAL_ENV", "PYTHONHOME", "PYTHONPATH", "CONDA_PREFIX", "UV_PROJECT_ENVIRONMENT")
    environ = {name: value for name, value in os.environ.items() if name not in dropped}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [shell, "-c", build.script],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environ,
            # If we are killed, what we started still holds the lock, and is waited for.
            pass_fds=lock.handles,
        )  # fmt: skip
        try:
            return process.wait()
        except BaseException:  # Ctrl-C: what it started is not left to itself.
            process.terminate()
            process.wait()
            raise


def build_in_job(
    build: Build,
    request: Request,
    builder: Builder,
    say: Callable[[str], None],
    *,
    environ: Mapping[str, str],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Have a job build it, and wait for the job; a build of the same that runs is waited for."""
    _make(build.folder.parent)
    note = build.folder.with_name(f"{build.folder.name}.job.json")
    folder, job_id = _read_note(note)
    if job_id is None or not _goes_on(job_id):
        folder = builder.home / "jobs" / f"build-{build.folder.name}-{time.strftime('%H%M%S')}"
        plan = folder / "build.json"
        _make(folder)
        write_whole(plan, json.dumps(to_json(build)))
        job_id = _submit(build_job(builder, plan), request, folder, say, environ)
        write_whole(note, json.dumps({"job": job_id, "folder": str(folder)}))
        builder.remember(job_id, str(folder))
        say(f"job {job_id} builds the environment of {build.source}; log in {folder}")
    else:
        say(f"job {job_id} builds it already: waiting for it")
    assert folder is not None
    _wait(build, job_id, folder, say, sleep)


def _submit(
    job: OwnJob,
    request: Request,
    folder: Path,
    say: Callable[[str], None],
    environ: Mapping[str, str],
) -> str:
    scheduler = cluster(environ)
    try:
        text = own_script(job, request, folder, scheduler)
        return submit_own(text, folder, scheduler, notice=say)
    except SchedulerError as error:
        if "not available" not in (error.said or "").lower():
            raise
    # No node has so much memory: then what jobs get that do not ask for any.
    text = own_script(replace(job, memory=None), request, folder, scheduler)
    return submit_own(text, folder, scheduler, notice=say)


def build_job(builder: Builder, plan: Path) -> OwnJob:
    """One task, 10 GB, an hour at most."""
    words = (builder.python, "-m", "runyard", "env", "build", "--plan", str(plan))
    return OwnJob(
        name="runyard-build",
        about="builds an environment, which many jobs then use",
        lines=(
            f"export RUNYARD_HOME={quote(builder.home)}",
            f'export PYTHONPATH={quote(builder.source)}"${{PYTHONPATH:+:$PYTHONPATH}}"',
            "cd /",
            f"exec {' '.join(map(quote, words))}",
        ),
        cpus=_CPUS,
        memory=_MEMORY,
        seconds=_SECONDS,
    )


def to_json(build: Build) -> dict[str, str | None]:
    return {"kind": build.kind, "source": build.source, "folder": str(build.folder),
            "script": build.script, "wanted": build.wanted}  # fmt: skip


def from_json(content: Mapping[str, str | None]) -> Build:
    return Build(
        kind=str(content["kind"]),
        source=str(content["source"]),
        folder=Path(str(content["folder"])),
        script=str(content["script"]),
        wanted=content["wanted"],
    )


def _wait(
    build: Build, job_id: str, folder: Path, say: Callable[[str], None],
    sleep: Callable[[float], None],
) -> None:  # fmt: skip
    last = ""
    for look in itertools.count():
        if is_built(build):
            return
        if look % _LOOKS_A_POLL:
            sleep(_LOOK_EVERY)
            continue
        state = cluster().poll([job_id])[job_id]
        name = next(iter(state.states)).lower()
        if not state.is_open:
            # The marker may come to be seen here later than the end of the job.
            sleep(_LOOK_EVERY)
            if is_built(build):
                return
            raise BuildError(
                f"the job {job_id} that was to build the environment ended as {name}; "
                "nothing was submitted",
                said=_last_words(folder / f"{job_id}.log"),
                mend=f"its log is in {folder}",
            )
        reason = f" ({state.reason})" if state.reason else ""
        trouble = f"the build's job {job_id} is {name}{reason}"
        if trouble != last:
            say(trouble)
            last = trouble
        sleep(_LOOK_EVERY)


def _goes_on(job_id: str) -> bool:
    return cluster().poll([job_id])[job_id].is_open


def _read_note(note: Path) -> tuple[Path | None, str | None]:
    try:
        content = json.loads(note.read_text())
        return Path(content["folder"]), str(content["job"])
    except (OSError, ValueError, LookupError, TypeError):
        return None, None


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from error


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _last_words(log: Path) -> str | None:
    try:
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    except OSError:
        return None
    return "\n        ".join(lines[-_LAST_LINES:]) or None


def _unwritable(folder: Path, error: OSError) -> StateError:
    return StateError(
        f"{folder} cannot be written",
        said=error.strerror,
        mend="free some space there, or set RUNYARD_HOME to a folder on another disk",
    )
