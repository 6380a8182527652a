"""Where the jobs of a project keep what they write, and whether they can write there. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.clusters.load import GENERIC
from runyard.clusters.scratch import scratch_folder
from runyard.errors import ConfigError
from runyard.reading.variables import UnsetVariable, expand

if TYPE_CHECKING:
    from runyard.clusters.profile import Profile


def site_scratch(profile: Profile, environ: Mapping[str, str]) -> Path | None:
    """The large shared folder. A cluster that nobody has described may do without one."""
    try:
        return scratch_folder(profile, environ)
    except ConfigError:
        if profile.name == GENERIC:
            return None
        raise


def check_home(
    profile: Profile, home: Path, scratch: Path | None, environ: Mapping[str, str]
) -> None:
    """Refuse a state folder in which jobs of the site cannot write."""
    for place in profile.storage.read_only:
        try:
            folder = Path(expand(place, environ))
        except UnsetVariable:
            continue
        if folder in (home, *home.parents):
            raise ConfigError(
                f"jobs on {profile.name} cannot write in {folder}, where the state folder "
                f"{home} is",
                mend=f"export RUNYARD_HOME={scratch or '$SCRATCH'}/.runyard",
            )
