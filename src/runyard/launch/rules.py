"""What a site forbids, demands and limits, applied to what the user asks. Pure."""

from __future__ import annotations

import fnmatch
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
_NOT_OPTIONS = ("extra", "nodes", "tasks_per_node", "memory_per_gpu")


@dataclass(frozen=True)
class Ruled:
    """What one agent's job asks for, in the site's terms. None: the option is left out."""

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
    notes: tuple[str, ...]

    @property
    def asked(self) -> dict[str, Any]:
        """For the record."""
        named = {one.name: getattr(self, one.name) for one in fields(self)}
        dropped = ("notes", "options", "asks_time")
        kept = {name: value for name, value in named.items() if name not in dropped}
        return {
            name: value for name, value in {**kept, **self.options}.items() if value is not None
        }


def follow_rules(request: Request, profile: Profile, *, slots: int = 1) -> Ruled:
    """What the user asks, with the site's defaults, without what it forbids, within its limits."""
    asked, notes = _asked(request), list[str]()
    rules = profile.submission
    for name, reason in {**rules.forbidden, **rules.ignored}.items():
        key = _plain(name)
        if asked.pop(key, None) is not None and _path_of(key) in request.origins:
            how = "is not allowed" if name in rules.forbidden else "has no effect"
            notes.append(f"{name} {how} on {profile.name} and is left out: {reason}")
    left_out = {_plain(name) for name in {**rules.forbidden, **rules.ignored}}
    extra = [*rules.always, *request.resources.extra]
    for name, reason in rules.mandatory.items():
        key = _plain(name)
        said = any(_plain(one.split("=")[0]) == key for one in extra)
        if key not in asked and not said and not (key == "time" and "time" not in left_out):
            raise ConfigError(
                f"{profile.name} takes no job without {name.replace('_', '-')}: {reason}",
                mend=f"--{key.replace('_', '-')} VALUE, or {_path_of(key)} in runyard.yaml; "
                "nothing was submitted",
            )
    _check_values(request, profile, asked)
    partition, qos = _text(asked, "partition"), _text(asked, "qos")
    gpus, gpu_type = _gpus(request, profile, asked, partition, notes)
    time = _time(request, profile, asked, partition, qos, notes)
    cpus = _cpus(request, profile, gpus, gpu_type, slots) if "cpus" not in left_out else None
    memory = _whole(asked, "memory")
    if memory is not None and profile.memory.form == "none":
        notes.append(f"memory is not asked for on {profile.name}: its jobs get what nodes have")
        memory = None
    known = ("constraint", "reservation", "exclude", "mail", "mail_to")
    return Ruled(
        gpus=gpus,
        gpu_type=gpu_type,
        cpus=cpus,
        memory=memory,
        time=time,
        asks_time="time" not in left_out,
        partition=partition,
        account=_text(asked, "account"),
        qos=qos,
        options={name: str(asked[name]) for name in known if asked.get(name)},
        notes=tuple(notes),
    )


def _asked(request: Request) -> dict[str, Any]:
    resources = request.resources
    found: dict[str, Any] = {}
    for one in fields(resources):
        value = getattr(resources, one.name)
        if value is None or value == () or one.name in _NOT_OPTIONS:
            continue
        found[one.name] = ",".join(value) if isinstance(value, tuple) else value
    return found


def _check_values(request: Request, profile: Profile, asked: Mapping[str, Any]) -> None:
    for name, permitted in profile.submission.values.items():
        value = asked.get(_plain(name))
        if value is None or any(fnmatch.fnmatchcase(str(value), one) for one in permitted):
            continue
        raise ConfigError(
            f"{request.origin(_path_of(_plain(name)))}: {name} cannot be {value!r} on "
            f"{profile.name}",
            mend=f"it takes {', '.join(permitted)}",
        )


def _gpus(
    request: Request,
    profile: Profile,
    asked: Mapping[str, Any],
    partition: str | None,
    notes: list[str],
) -> tuple[int | None, str | None]:
    rules, where = profile.gpus, request.origin("resources.gpus")
    gpus, kind = _whole(asked, "gpus"), _text(asked, "gpu_type")
    if gpus is None and kind is not None:
        gpus = 1
    if not gpus:
        return gpus, None
    if rules.form == "none" or partition in rules.implicit or "*" in rules.implicit:
        notes.append(f"GPUs are not asked for on {profile.name}: nodes that have them give them")
        return None, None
    kind = kind or rules.default_type
    known = {**rules.types, **rules.slices}
    if kind is not None and known and kind not in known:
        raise ConfigError(
            f"{request.origin('resources.gpu_type')}: {profile.name} has no GPU called {kind!r}",
            mend=f"there are {', '.join(known)}",
        )
    if kind is None and rules.name_type:
        raise ConfigError(
            f"{profile.name} wants the type of GPU named",
            mend=f"--gpu-type, one of {', '.join(known) or 'those that sinfo -o %G shows'}",
        )
    model = rules.types.get(kind or "")
    per_node = model.per_node if model is not None else None
    if rules.whole_nodes and per_node and gpus != per_node:
        notes.append(f"jobs on {profile.name} get whole nodes: {per_node} GPUs instead of {gpus}")
        gpus = per_node
    if (per_node and gpus > per_node) or (rules.counts and gpus not in rules.counts):
        most = f"{' or '.join(map(str, rules.counts))}" if rules.counts else f"1 to {per_node}"
        raise ConfigError(
            f"{where}: no node of {profile.name} gives a job {gpus} GPUs",
            mend=f"--gpus {most}; more agents (--agents) use more nodes",
        )
    return gpus, kind


def _time(
    request: Request,
    profile: Profile,
    asked: Mapping[str, Any],
    partition: str | None,
    qos: str | None,
    notes: list[str],
) -> float:
    limit = profile.limit(partition, qos)
    shortest, longest = limit.shortest or 0.0, limit.longest
    time = asked.get("time")
    if time is None:
        usual = max(shortest, USUAL_SECONDS)
        return usual if longest is None else min(usual, longest)
    time = float(time)
    if longest is not None and time > longest:
        raise ConfigError(
            f"{request.origin('resources.time')}: jobs on {profile.name} last {clock(longest)} at "
            f"most, not {clock(time)}",
            mend=f"--time {clock(longest)}: a trial that is cut off goes on in the next job from "
            "its checkpoint",
        )
    is_test = profile.limits.test_job is not None and time <= profile.limits.test_job
    if time < shortest and not is_test:
        notes.append(
            f"jobs on {profile.name} last {clock(shortest)} at least: asked instead of "
            f"{clock(time)}"
        )
        return shortest
    return time


def _cpus(
    request: Request, profile: Profile, gpus: int | None, gpu_type: str | None, slots: int
) -> int:
    given = request.resources.cpus or 1
    if "resources.cpus" in request.origins:
        return given
    # One for each program at least; a site's share of a GPU is an upper bound.
    wanted = max(given, slots, _CPUS_BESIDE_A_GPU if gpus else 1)
    kind = profile.gpus.types.get(gpu_type or "") or profile.gpus.slices.get(gpu_type or "")
    most = kind.cpus * (gpus or 1) if kind is not None and kind.cpus else None
    return wanted if most is None else max(1, min(wanted, most))


def clock(seconds: float) -> str:
    """As Slurm writes lengths of time."""
    whole = max(1, round(seconds))
    days, rest = divmod(whole, 86400)
    return f"{days}-{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


def _path_of(key: str) -> str:
    return f"resources.{key}"


def _plain(name: str) -> str:
    """An option's name as a field has it: `--mem` and `mem` are `memory`."""
    bare = name.lstrip("-").replace("-", "_")
    return {
        "mem": "memory",
        "mem_per_gpu": "memory",
        "mem_per_cpu": "memory",
        "cpus_per_task": "cpus",
        "mail_type": "mail",
        "mail_user": "mail_to",
    }.get(bare, bare)


def _text(asked: Mapping[str, Any], key: str) -> str | None:
    return None if asked.get(key) is None else str(asked[key])


def _whole(asked: Mapping[str, Any], key: str) -> int | None:
    return None if asked.get(key) is None else int(asked[key])
