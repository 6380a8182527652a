"""What one agent's job asks for, in numbers: what the user said, and what follows where nobody did.

Pure. Whether the site takes it at all was looked at before (`config/check.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

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

    @property
    def asked(self) -> dict[str, Any]:
        """For the record."""
        named = {one.name: getattr(self, one.name) for one in fields(self)}
        kept = {name: value for name, value in named.items() if name not in _NOT_RECORDED}
        return {name: one for name, one in {**kept, **self.options}.items() if one is not None}


_NOT_RECORDED = ("options", "asks_time")


def follow_rules(request: Request, profile: Profile, *, slots: int = 1) -> Ruled:
    """What each agent gets; `slots` programs run in it at a time."""
    asked, rules = request.resources, profile.submission
    left_out = {*rules.forbidden, *rules.ignored}
    gpus = asked.gpus
    if gpus is None and asked.gpu_type is not None:
        gpus = 1
    if _is_implicit(profile, asked.partition):
        gpus = None
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
        cpus=None if "cpus" in left_out else _cpus(request, profile, gpus, slots),
        memory=None if profile.memory.form == "none" else asked.memory,
        time=asked.time if asked.time is not None else _usual_time(profile, request),
        asks_time="time" not in left_out,
        partition=asked.partition,
        account=asked.account,
        qos=asked.qos,
        options={name: str(value) for name, value in named.items() if value},
    )


def _is_implicit(profile: Profile, partition: str | None) -> bool:
    """Whether nodes there have GPUs that cannot be asked for."""
    found = profile.gpus.implicit
    return profile.gpus.form == "none" or partition in found or "*" in found


def _usual_time(profile: Profile, request: Request) -> float:
    limit = profile.limit(request.resources.partition, request.resources.qos)
    usual = max(limit.shortest or 0.0, USUAL_SECONDS)
    return usual if limit.longest is None else min(usual, limit.longest)


def _cpus(request: Request, profile: Profile, gpus: int | None, slots: int) -> int:
    given = request.resources.cpus or 1
    if "resources.cpus" in request.origins:
        return given
    # A core for each program at least, however many CPUs Slurm counts it as; a site's share of a
    # GPU is an upper bound.
    cores = max(slots, _CPUS_BESIDE_A_GPU if gpus else 1)
    wanted = max(given, cores * profile.memory.threads_per_core)
    kind = request.resources.gpu_type or ""
    model = profile.gpus.types.get(kind) or profile.gpus.slices.get(kind)
    most = model.cpus * (gpus or 1) if model is not None and model.cpus else None
    return wanted if most is None else max(1, min(wanted, most))


def clock(seconds: float) -> str:
    """As Slurm writes lengths of time."""
    whole = max(1, round(seconds))
    days, rest = divmod(whole, 86400)
    return f"{days}-{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
