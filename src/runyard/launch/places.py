"""Where the jobs of a project find their things, and whether the cluster lets them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.clusters.load import GENERIC
from runyard.config.variables import expand
from runyard.errors import ConfigError

if TYPE_CHECKING:
    from runyard.config.request import Request


def scratch_of(request: Request, environ: Mapping[str, str]) -> Path | None:
    """The large shared folder. A cluster that nobody has described may do without one."""
    profile = request.profile
    text = profile.storage.scratch
    if not text:
        return None
    try:
        return Path(expand(text, f"the profile {profile.name}, storage.scratch", environ))
    except ConfigError as error:
        if profile.name == GENERIC:
            return None
        raise ConfigError(
            f"{profile.name} has a scratch folder, and this shell does not know where",
            said=error.what,
            mend="export SCRATCH=/path/of/yours, or set storage.scratch under profile: in "
            "runyard.yaml; nothing was submitted",
        ) from None


def check_home(request: Request, home: Path, scratch: Path | None) -> None:
    """Refuse a state folder in which the site's jobs could not write, or may not be submitted."""
    profile = request.profile
    mend = f"export RUNYARD_HOME={scratch or '$SCRATCH'}/.runyard"
    rules = profile.submission
    if rules.allowed_from == "scratch" and scratch is not None and not _is_in(home, scratch):
        raise ConfigError(
            f"{profile.name} takes jobs from scratch only, and the state folder is {home}",
            said=rules.reason,
            mend=mend,
        )
    for place in profile.storage.read_only:
        folder = Path(place.replace("${HOME}", str(Path.home()))).expanduser()
        if "$" not in str(folder) and _is_in(home, folder):
            raise ConfigError(
                f"jobs on {profile.name} cannot write in {folder}, where the state folder "
                f"{home} is",
                mend=mend,
            )


def _is_in(path: Path, folder: Path) -> bool:
    return folder in (path, *path.parents)
