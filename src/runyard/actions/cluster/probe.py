"""The job of `runyard doctor --job`: what it asks for, and which folders it looks at."""

from __future__ import annotations

import os
from pathlib import Path

from runyard.actions.events import Notify, in_words
from runyard.client.keys import CREDENTIALS, netrc_path, project_keys
from runyard.clusters.profile import Profile
from runyard.clusters.scratch import scratch_folder
from runyard.config.check import check
from runyard.config.flags import Flags
from runyard.config.project_file import read_project
from runyard.errors import ConfigError, RunyardError
from runyard.home import Home, prepare
from runyard.schedulers.doctor import Doctor, Outcome, ProbeRequest


def look_from_inside(
    doctor: Doctor,
    profile: Profile,
    flags: Flags,
    home: Home,
    folder: Path,
    wait: float,
    notify: Notify,
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
    outcome = doctor.look_from_inside(
        request,
        profile,
        ProbeRequest(
            folders, home.path, keys, wait + profile.elasticity.start_wait, in_words(notify)
        ),
    )
    return outcome, {name: str(path) for name, path in folders.items()}
