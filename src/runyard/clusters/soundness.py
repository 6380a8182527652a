"""Finds contradictions in a profile."""

from __future__ import annotations

from collections.abc import Iterator

from runyard.clusters.profile import Limit, Profile
from runyard.reading.problems import Path, Problem
from runyard.reading.units import short_time


def contradictions(profile: Profile) -> list[Problem]:
    """Settings that contradict each other; each problem has the place of one of them."""
    return [
        *_options(profile),
        *_limits(profile),
        *_gpus(profile),
        *_memory(profile),
        *_network(profile),
        *_script(profile),
    ]


def _options(profile: Profile) -> Iterator[Problem]:
    rules = profile.submission
    for option, reason in rules.mandatory.items():
        place: Path = ("submission", "mandatory", option)
        for word, table in (("forbidden", rules.forbidden), ("ignored", rules.ignored)):
            if option in table:
                yield Problem(
                    place,
                    f"{option} is mandatory ({reason}) and {word} ({table[option]}) at once",
                    "remove it from one of the two",
                )
    for option in rules.forbidden:
        if option in rules.ignored:
            yield Problem(
                ("submission", "ignored", option),
                f"{option} is forbidden and ignored at once",
                "remove it from one of the two",
            )
        if option in rules.defaults:
            yield Problem(
                ("submission", "defaults", option),
                f"{option} has a default and is forbidden ({rules.forbidden[option]})",
                "remove it from one of the two",
            )
    for option, values in rules.values.items():
        default = rules.defaults.get(option)
        if not values:
            yield Problem(
                ("submission", "values", option),
                f"{option} may have no value at all",
                "list the values, or put it under forbidden",
            )
        elif default is not None and "*" not in "".join(values) and default not in values:
            yield Problem(
                ("submission", "defaults", option),
                f"the default {default} of {option} is none of its values",
                f"write one of {', '.join(values)}",
            )


def _limits(profile: Profile) -> Iterator[Problem]:
    limits = profile.limits
    places: list[tuple[Path, Limit]] = [(("limits",), limits)]
    places += [
        (("limits", "by_partition", name), limit) for name, limit in limits.by_partition.items()
    ]
    places += [(("limits", "by_qos", name), by_qo) for name, by_qo in limits.by_qos.items()]
    for place, limit in places:
        if limit.shortest and limit.longest and limit.shortest > limit.longest:
            yield Problem(
                (*place, "shortest"),
                f"the shortest job ({short_time(limit.shortest)}) is longer than the longest "
                f"({short_time(limit.longest)})",
                "mend one of the two",
            )
    if limits.array_throttle and limits.array_throttle >= limits.array_size:
        yield Problem(
            ("limits", "array_throttle"),
            f"{limits.array_throttle} array tasks at once are more than an array of "
            f"{limits.array_size} can have",
            "mend one of the two",
        )


def _gpus(profile: Profile) -> Iterator[Problem]:
    gpus = profile.gpus
    known = {**gpus.types, **gpus.slices}
    if gpus.default_type and gpus.default_type not in known:
        yield Problem(
            ("gpus", "default_type"),
            f"the default type {gpus.default_type} is none of its types",
            f"write one of {', '.join(known)}" if known else "describe it under types",
        )
    for name, gpu_slice in gpus.slices.items():
        if gpu_slice.of and gpu_slice.of not in gpus.types:
            yield Problem(
                ("gpus", "slices", name, "of"),
                f"{name} is a slice of {gpu_slice.of}, which is none of its types",
                "describe that type under types, or mend its name",
            )
        if name in gpus.types:
            yield Problem(
                ("gpus", "slices", name), f"{name} is a type and a slice at once", "remove one"
            )
    if gpus.form == "none" and gpus.types and not gpus.implicit:
        yield Problem(
            ("gpus", "form"),
            "GPUs cannot be asked for (form: none), and no partition has them anyway",
            "write the form, or which partitions have them under implicit",
        )


def _memory(profile: Profile) -> Iterator[Problem]:
    if profile.memory.form != "none" and "memory" in profile.submission.forbidden:
        yield Problem(
            ("memory", "form"),
            f"memory is asked for {profile.memory.form} and forbidden "
            f"({profile.submission.forbidden['memory']})",
            "write form: none, or remove memory from forbidden",
        )
    if profile.memory.form == "per_gpu" and profile.gpus.form == "none":
        yield Problem(
            ("memory", "form"),
            "memory is asked for per GPU, and GPUs cannot be asked for",
            "write form: per_node or per_cpu",
        )


def _network(profile: Profile) -> Iterator[Problem]:
    network = profile.network
    if network.internet == "proxy" and not network.proxy_module:
        yield Problem(
            ("network", "internet"),
            "the internet is reached by a proxy, and no module sets it",
            "write proxy_module",
        )
    if network.ports is not None:
        ports = network.port_range
        if ports is None or not 0 < ports[0] <= ports[1] < 65536:
            yield Problem(
                ("network", "ports"), f"{network.ports} is no range of ports", "write 20000-30000"
            )


def _script(profile: Profile) -> Iterator[Problem]:
    if profile.script.shell not in ("bash", "zsh"):
        yield Problem(
            ("script", "interpreter"),
            f"scripts are written for bash and zsh, not for {profile.script.shell}",
            "write /bin/bash or /bin/zsh",
        )
