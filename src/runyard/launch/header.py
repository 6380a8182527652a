"""The `#SBATCH` lines of a job: options in a fixed order, in the form that the site takes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runyard.launch.rules import Ruled, clock

if TYPE_CHECKING:
    from runyard.clusters.profile import Profile
    from runyard.config.request import Request

# Slurm looks every minute for jobs that are to be told, and may tell them a minute too soon: in a
# shorter job that would be most of it. The agent knows the end by itself anyway.
_SHORTEST_TOLD = 600.0


@dataclass(frozen=True)
class Header:
    """Options of sbatch, without the array's, which is drawn up when it is split."""

    options: tuple[tuple[str, str | None], ...]

    def lines(self) -> list[str]:
        return [
            f"--{name}" if value is None else f"--{name}={value}" for name, value in self.options
        ]


def header(
    name: str,
    request: Request,
    profile: Profile,
    ruled: Ruled,
    *,
    form: str,
    agents: int,
    grace: float,
    more: Sequence[str] = (),
) -> Header:
    resources = request.resources
    nodes = agents if form == "nodes" else resources.nodes or 1
    tasks = 1 if form == "nodes" else resources.tasks_per_node or 1
    options: list[tuple[str, str | None]] = [("job-name", name)]

    def add(option: str, value: object) -> None:
        if value is not None:
            options.append((option, str(value)))

    add("account", ruled.account)
    add("partition", ruled.partition)
    add("qos", ruled.qos)
    add("constraint", ruled.options.get("constraint"))
    add("reservation", ruled.options.get("reservation"))
    add("exclude", ruled.options.get("exclude"))
    add("nodes", nodes)
    add("ntasks-per-node", tasks)
    add("cpus-per-task", ruled.cpus)
    options += _gpus(profile, ruled)
    options += _memory(profile, ruled, tasks)
    add("time", clock(ruled.time) if ruled.asks_time else None)
    if grace >= 1 and ruled.time >= _SHORTEST_TOLD and "signal" not in profile.submission.forbidden:
        add("signal", f"B:USR2@{grace:.0f}")
    if not profile.elasticity.requeue:
        options.append(("no-requeue", None))
    elif profile.elasticity.spot:
        options.append(("requeue", None))
    add("open-mode", "append")
    add("mail-type", ruled.options.get("mail"))
    add("mail-user", ruled.options.get("mail_to"))
    for word in (*profile.submission.always, *more, *resources.extra):
        option, equals, value = word.lstrip("-").partition("=")
        options = [one for one in options if one[0] != option]
        options.append((option, value if equals else None))
    return Header(tuple(options))


def _gpus(profile: Profile, ruled: Ruled) -> list[tuple[str, str | None]]:
    if not ruled.gpus:
        return []
    typed = f"{ruled.gpu_type}:{ruled.gpus}" if ruled.gpu_type else str(ruled.gpus)
    forms: dict[str, tuple[str, str | None]] = {
        "gpus_per_node": ("gpus-per-node", typed),
        "gpus_per_task": ("gpus-per-task", typed),
        "gres": ("gres", f"gpu:{typed}"),
    }
    return [forms[profile.gpus.form]] if profile.gpus.form in forms else []


def _memory(profile: Profile, ruled: Ruled, tasks: int) -> list[tuple[str, str | None]]:
    """The one amount that was asked, in the form that the site permits."""
    gpus, cpus = ruled.gpus or 0, (ruled.cpus or 1) * tasks
    total = ruled.memory
    if total is None:
        return []
    if profile.memory.form == "per_cpu" and total:
        return [("mem-per-cpu", f"{-(-total // cpus)}M")]
    if profile.memory.form == "per_gpu" and total and gpus:
        return [("mem-per-gpu", f"{-(-total // gpus)}M")]
    return [("mem", f"{total}M" if total else "0")]
