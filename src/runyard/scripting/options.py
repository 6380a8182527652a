"""The keywords of `runyard.submit`, `map` and `sweep`, into what an action takes."""

from __future__ import annotations

import logging
import os
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from runyard.actions.events import Event, Notice
from runyard.actions.tracking import ProjectOptions
from runyard.config.flags import Flags, FlagValue, flag, flag_fields
from runyard.errors import UsageError
from runyard.reading.kinds import Items, Unfit
from runyard.reading.problems import nearest
from runyard.reading.records import kind_of_setting
from runyard.schedulers.choice import HERE, NAMES, choose, cluster

_LOGGER = logging.getLogger("runyard")


class JobResources(TypedDict, total=False):
    """What a job asks for: the keys of `resources:` in runyard.yaml, which they replace."""

    gpu_type: str
    cpus: int
    memory: str
    memory_per_gpu: str
    time: str
    nodes: int
    tasks_per_node: int
    partition: str
    account: str
    qos: str
    constraint: str
    reservation: str
    exclude: Sequence[str]
    mail: Sequence[str]
    mail_to: str
    extra: Sequence[str]


class Resources(JobResources, total=False):
    """With the GPUs, for which a sweep has a keyword of its own."""

    gpus: int


class Options(Resources, total=False):
    """All keywords. `settings` has other keys of runyard.yaml, as there or by their path."""

    on: str | None
    name: str | None
    project: str | None
    entity: str | None
    folder: str | os.PathLike[str] | None
    retries: int | None
    warm: str | Sequence[str] | None
    chain: int | None
    settings: Mapping[str, Any]


RESOURCES: frozenset[str] = Resources.__optional_keys__
OPTIONS: frozenset[str] = Options.__optional_keys__


@dataclass(frozen=True)
class JobOptions:
    """The keywords, read."""

    on: str
    """The scheduler's name: where it is to run."""
    folder: Path
    project: ProjectOptions
    name: str | None
    retries: int | None
    seconds: float | None
    """How long it may take."""
    warm: tuple[str, ...] = ()
    """Modules that are imported once, before the calls."""


def read_options(options: Mapping[str, Any], *, default: str | None = None) -> JobOptions:
    """`default`: where it runs if nothing is said; None: on the cluster, where there is one."""
    for word in options:
        if word not in OPTIONS:
            guess = nearest(word, OPTIONS)
            raise UsageError(
                f"there is no option {word!r}",
                mend=f"did you mean {guess}?" if guess else f"there are: {', '.join(OPTIONS)}",
            )
    values = {name: value for name, value in options.items() if value is not None}
    paths = {f"resources.{name}": value for name, value in values.items() if name in RESOURCES}
    paths |= {"name": values["name"]} if "name" in values else {}
    paths |= {f"tracking.{word}": values[word] for word in ("project", "entity") if word in values}
    paths |= {"agents.chain": values["chain"]} if "chain" in values else {}
    flags = _flags({**values.get("settings", {}), **paths})
    return JobOptions(
        on=choose_place(values.get("on") or default),
        folder=Path(values.get("folder") or Path.cwd()).resolve(),
        project=ProjectOptions(flags, values.get("project"), values.get("entity")),
        name=values.get("name"),
        retries=values.get("retries"),
        seconds=flags["resources.time"],
        warm=_read_warm(values.get("warm", ())),
    )


def _read_warm(modules: str | Sequence[str]) -> tuple[str, ...]:
    return (modules,) if isinstance(modules, str) else tuple(modules)


def log_notice(event: Event) -> None:
    """What an action tells goes to Python's log, under the name runyard."""
    if isinstance(event, Notice):
        _LOGGER.info(event.text)


def choose_place(on: str | None) -> str:
    """The scheduler that is named; None: the cluster's, where there is one."""
    if on is None:
        scheduler = cluster()
        return scheduler.name if scheduler.is_here() else HERE
    if on not in NAMES:
        raise UsageError(f"on={on!r} is no place to run", mend=f"it can be {' or '.join(NAMES)}")
    choose(on)
    return on


def _flags(values: Mapping[str, Any]) -> Flags:
    fields = dict(flag_fields())
    flags: dict[str, FlagValue] = {}
    for path, value in _by_path(values, fields):
        word = path.removeprefix("resources.")
        if path not in fields:
            guess = nearest(path, list(fields))
            raise UsageError(
                f"settings: {path!r} is no setting of a request",
                mend=f"did you mean {guess}?" if guess else "`runyard submit --help` lists them",
            )
        kind = kind_of_setting(fields[path])
        try:
            typed = kind.read(value)
        except Unfit as error:
            raise UsageError(f"{word}={value!r}: {error.wanted}", mend=error.mend) from None
        if isinstance(kind, Items):
            entries = [FlagValue(item, str(item)) for item in typed]
        else:
            entries = [FlagValue(typed, str(value))]
        flags[path] = flag(path, entries)
    return Flags(flags)


def _by_path(
    values: Mapping[str, Any], fields: Container[str], above: str = ""
) -> Iterator[tuple[str, Any]]:
    """Each setting with its path, also where sections are nested as in runyard.yaml."""
    for name, value in values.items():
        path = f"{above}{name}"
        if isinstance(value, Mapping) and path not in fields:
            yield from _by_path(value, fields, f"{path}.")
        else:
            yield path, value
