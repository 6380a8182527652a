"""What one agent's job asks for, in numbers: what the user said, and what follows where nobody did.

Pure. Whether the site takes it at all was looked at before (`config/check.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from runyard.errors import ConfigError

if TYPE_CHECKING:
    from runyard.clusters.profile import Profile
    from runyard.config.request import Request

USUAL_SECONDS = 3600.0
# The wandb client runs beside the program: with one CPU they take turns.
_CPUS_BESIDE_A_GPU = 2


@dataclass(frozen=True)
class Ruled:
    """What is asked for. None: the option is left out."""

    gpus: int | None
    gpu_type: str | None
    cpus: int | None
    memory: int | None
    """MiB on each node; 0: all of it."""
    time: float
    asks_time: bool
    partition: str | None
    account: str | None
    qos: str | None
    options: Mapping[str, str]
    """The rest: constraint, reservation, exclude, mail, mail_to."""
    notes: tuple[str, ...] = ()
    """What the user should know about it."""

    @property
    def asked(self) -> dict[str, Any]:
        """For the record."""
        named = {setting.name: getattr(self, setting.name) for setting in fields(self)}
        kept = {name: value for name, value in named.items() if name not in _NOT_RECORDED}
        options = {**kept, **self.options}
        return {name: value for name, value in options.items() if value is not None}


_NOT_RECORDED = ("options", "asks_time", "notes")


def follow_rules(
    request: Request, profile: Profile, *, slots: int = 1, trials: int | None = None
) -> Ruled:
    """What each agent gets; `slots` programs run in it at a time, unless there are fewer in all.

    ConfigError where they would have less than a CPU each.
    """
    asked, rules = request.resources, profile.submission
    left_out = {*rules.forbidden, *rules.ignored}
    gpus = asked.gpus
    if gpus is None and asked.gpu_type is not None:
        gpus = 1
    if _is_implicit(profile, asked.partition):
        gpus = None
    asks_cpus = "cpus" not in left_out
    cpus, notes = _cpus(request, profile, gpus, slots, trials) if asks_cpus else (None, ())
    named: dict[str, Any] = {
        "constraint": asked.constraint,
        "reservation": asked.reservation,
        "exclude": ",".join(asked.exclude),
        "mail": ",".join(asked.mail),
        "mail_to": asked.mail_to,
    }
    return Ruled(
        gpus=gpus,
        gpu_type=asked.gpu_type if gpus else None,
        cpus=cpus,
        memory=None if profile.memory.form == "none" else asked.memory,
        time=asked.time if asked.time is not None else _usual_time(profile, request),
        asks_time="time" not in left_out,
        partition=asked.partition,
        account=asked.account,
        qos=asked.qos,
        options={name: str(value) for name, value in named.items() if value},
        notes=notes,
    )


def _is_implicit(profile: Profile, partition: str | None) -> bool:
    """Whether nodes there have GPUs that cannot be asked for."""
    implicit = profile.gpus.implicit
    return profile.gpus.form == "none" or partition in implicit or "*" in implicit


def _usual_time(profile: Profile, request: Request) -> float:
    limit = profile.limit(request.resources.partition, request.resources.qos)
    usual = max(limit.shortest or 0.0, USUAL_SECONDS)
    return usual if limit.longest is None else min(usual, limit.longest)


def _cpus(
    request: Request, profile: Profile, gpus: int | None, slots: int, trials: int | None
) -> tuple[int, tuple[str, ...]]:
    """CPUs of each task, and what is to be said about them."""
    resources = request.resources
    cpus = resources.cpus or 1
    if "resources.cpus" in request.origins:
        together = slots if trials is None else min(slots, trials)
        if cpus * (resources.tasks_per_node or 1) < together:
            raise ConfigError(
                f"{together} programs at a time in a job with {cpus} CPU{'s' * (cpus > 1)} "
                f"({request.origin('resources.cpus')}): each needs one at least",
                mend=f"write cpus: {together}, or -c {together} (it counts those of the whole "
                "job), or fewer programs at a time",
            )
        return cpus, ()
    # A core for each program at least, however many CPUs Slurm counts it as; a site's share of a
    # GPU is an upper bound for more than that.
    cores = max(slots, _CPUS_BESIDE_A_GPU if gpus else 1)
    wanted = max(cpus, cores * profile.memory.threads_per_core)
    kind = resources.gpu_type or ""
    model = profile.gpus.types.get(kind) or profile.gpus.slices.get(kind)
    if model is None or not model.cpus:
        return wanted, ()
    share, per_node = model.cpus * (gpus or 1), getattr(model, "per_node", None)
    if per_node and slots > model.cpus * per_node:
        raise ConfigError(
            f"{slots} programs at a time need a CPU each, and a node with {kind} has "
            f"{model.cpus * per_node}",
            mend="run fewer programs at a time",
        )
    if slots <= share:
        return min(wanted, share), ()
    note = (
        f"{slots} CPUs, one for each program at a time, are more than the share of {gpus or 1} "
        f"{kind} ({model.cpus} each): it waits longer and keeps others from the GPUs"
    )
    return slots, (note,)
