"""The variables of a shell that a job of Slurm's may inherit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runyard.config.request import Request

# Of the shell's own settings for sbatch, those that may stand where nobody says anything else: an
# account in ~/.bashrc is what some sites advise. The others would overrule the script unseen.
_WELCOME = ("ACCOUNT", "PARTITION", "QOS", "CONSTRAINT", "RESERVATION", "CLUSTERS")
_OF_SLURM = ("SLURM_CONF", "SLURM_CLUSTERS", "SLURM_TIME_FORMAT")


def clean_environment(environ: Mapping[str, str], said: Collection[str]) -> dict[str, str]:
    """The shell's environment, without what would overrule the script, what belongs to another job,
    and the key, which the agent finds by itself: Slurm keeps a copy of all the rest."""
    written = {name.replace("-", "_").upper() for name in said}

    def is_kept(name: str) -> bool:
        if name.startswith("SBATCH_"):
            option = name.removeprefix("SBATCH_")
            return option in _WELCOME and option not in written
        return name in _OF_SLURM or not (name.startswith("SLURM") or name == "WANDB_API_KEY")

    return {name: value for name, value in environ.items() if is_kept(name)}


def with_shell_options(request: Request, environ: Mapping[str, str]) -> Request:
    """What the shell says for sbatch where nobody else does: some sites advise an account there."""
    resources, origins = request.resources, dict(request.origins)
    for name in ("account", "partition", "qos", "reservation"):
        variable = f"SBATCH_{name.upper()}"
        if environ.get(variable) and f"resources.{name}" not in origins:
            changed: dict[str, Any] = {name: environ[variable]}
            resources = replace(resources, **changed)
            origins[f"resources.{name}"] = variable
    return replace(request, resources=resources, origins=origins)
