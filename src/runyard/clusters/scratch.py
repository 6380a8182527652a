"""The scratch folder of a cluster, in the current environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from runyard.clusters.profile import Profile
from runyard.errors import ConfigError
from runyard.reading.variables import UnsetVariable, expand


def scratch_folder(profile: Profile, environ: Mapping[str, str] = os.environ) -> Path:
    """The folder in which projects store what their jobs write."""
    named = profile.storage.scratch
    mend = "export SCRATCH=FOLDER, or write profile: {storage: {scratch: FOLDER}} in runyard.yaml"
    if not named:
        raise ConfigError(f"the profile {profile.name} names no scratch folder", mend=mend)
    try:
        folder = Path(expand(named, environ))
    except UnsetVariable as error:
        raise ConfigError(
            f"{error.name} is not set, and the profile {profile.name} has its scratch folder at "
            f"{named}",
            mend=mend,
        ) from None
    if not folder.is_absolute():
        raise ConfigError(f"the scratch folder {folder} is no whole path", mend=mend)
    return folder
