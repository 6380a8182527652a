"""The job of `runyard doctor --job`: what it asks for, and which folders it looks at."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from runyard.actions.events import Notify, in_words
from runyard.client.keys import CREDENTIALS, netrc_path, project_keys
from runyard.clusters.profile import Profile
from runyard.clusters.scratch import scratch_folder
from runyard.config.check import check
from runyard.config.flags import Flags
from runyard.config.project_file import read_project
from runyard.config.request import Request
from runyard.errors import ConfigError, RunyardError
from runyard.home import Home, prepare
from runyard.schedulers.slurm.doctor.probe_job import Outcome, run_probe
from runyard.schedulers.slurm.header import put_together
from runyard.schedulers.slurm.settings import GPU_OPTIONS
from runyard.schedulers.slurm.values import clock

_SECONDS = 300.0


def look_from_inside(
    profile: Profile, flags: Flags, home: Home, folder: Path, wait: float, notify: Notify
) -> tuple[Outcome, dict[str, str]]:
    """The outcome of the job, and the folders it was told to look for."""
    try:
        request = check(read_project(folder, flags)).request
        prepare(home)
    except RunyardError as error:
        return Outcome(None, error.what, error.mend), {}
    folders = {"project folder": request.folder, "state folder": home.path}
    try:
        scratch = scratch_folder(profile)
        if scratch.is_dir():
            folders["scratch"] = scratch
    except ConfigError:
        pass  # It has a finding of its own.
    keys = [
        str(Path(os.environ.get("HOME", "/")) / CREDENTIALS),
        str(project_keys(folder)),
        str(netrc_path(os.environ)),
    ]
    outcome = run_probe(
        os.environ,
        profile,
        options=put_together(_options(request, profile)).lines(),
        folders=folders,
        home=home.path,
        keys=keys,
        wait=wait + profile.elasticity.start_wait,
        say=in_words(notify),
    )
    return outcome, {name: str(path) for name, path in folders.items()}


def _options(request: Request, profile: Profile) -> Iterator[str]:
    """A short job with one task, let in by whatever the site wants to see."""
    asked = request.resources
    limit = profile.limit(asked.partition, asked.qos)
    shortest = 0.0 if profile.limits.test_job else limit.shortest or 0.0
    seconds = max(min(_SECONDS, limit.longest or _SECONDS), shortest)
    yield "--job-name=runyard-doctor"
    yield f"--time={clock(seconds)}"
    yield "--nodes=1"
    yield "--ntasks=1"
    yield f"--output={os.devnull}"
    yield "--chdir=/"
    yield "--export=NONE"
    for name in ("partition", "account", "qos", "constraint", "reservation"):
        value = getattr(asked, name)
        if value is not None:
            yield f"--{name}={value}"
    if "resources.gpus" in request.origins and asked.gpus and profile.gpus.form != "none":
        kind = f"{asked.gpu_type}:" if asked.gpu_type else ""
        gpus = GPU_OPTIONS[profile.gpus.form].format(kind)
        yield f"{gpus}{asked.gpus}"
    yield from profile.submission.always
    yield from asked.extra
