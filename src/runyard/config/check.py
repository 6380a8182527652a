"""A request against its cluster's profile, before anything is submitted.

What the site forbids or ignores is left out, and said. What it demands and is missing, or does not
have, is refused with the reason.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from runyard.clusters.profile import Profile
from runyard.clusters.scratch import scratch_folder
from runyard.config.check_sizes import Refusal, check_gpus, check_limits
from runyard.config.request import Request, Resources
from runyard.errors import ConfigError
from runyard.reading.problems import closest, listed
from runyard.reading.records import settings_of
from runyard.schedulers.inside import this_job
from runyard.schedulers.slurm.settings import EXTRA_FLAG, LOG_FILES, setting_name


@dataclass(frozen=True)
class Checked:
    """A request as the site takes it, what was changed for that, and why it would be refused."""

    request: Request
    notes: tuple[str, ...]
    refusals: tuple[Refusal, ...]

    def accepted(self) -> Request:
        """The request; ConfigError with every reason, where there are some."""
        if not self.refusals:
            return self.request
        name = self.request.profile.name
        if len(self.refusals) == 1:
            (only,) = self.refusals
            raise ConfigError(f"{name}: {only.what}", mend=only.mend)
        lines = "".join(f"\n  {refusal.what}; {refusal.mend}" for refusal in self.refusals)
        raise ConfigError(f"{name} would not take this, for {len(self.refusals)} reasons:{lines}")


def check(request: Request, *, environ: Mapping[str, str] = os.environ) -> Checked:
    """The request against its own profile."""
    request, notes = _without_unwanted(request)
    request, more = _throttled(request)
    if request.resources.mail_to and not request.resources.mail:
        origin = request.origin("resources.mail_to")
        more.append(f"no mail is sent: {origin} says where to, and mail (END, FAIL, ALL) not when")
    gpu_refusals, gpu_notes = check_gpus(request)
    refusals = [
        *_missing(request),
        *_wrong_values(request),
        *_other_server(request),
        *gpu_refusals,
        *check_limits(request),
        *_wrong_place(request, environ),
    ]
    return Checked(request, (*notes, *more, *gpu_notes), tuple(refusals))


def _without_unwanted(request: Request) -> tuple[Request, list[str]]:
    """The request without options that the site forbids or ignores."""
    profile, notes = request.profile, []
    for table, words in (
        (profile.submission.forbidden, "is left out"),
        (profile.submission.ignored, "has no effect here and is left out"),
    ):
        for option, reason in table.items():
            if option == "memory" and "resources.memory_per_gpu" in request.origins:
                origin = request.origins["resources.memory_per_gpu"]
            else:
                origin = request.origins.get(f"resources.{option}", "")
            request, was_there = _without(request, option)
            # A default of the profile's own goes without a word.
            if was_there and (origin or was_there == "extra"):
                place = f" ({origin})" if origin else ""
                notes.append(f"{option}{place} {words}: {reason}")
    request, logs = _without_log_files(request)
    notes += logs
    if profile.memory.form == "none" and request.resources.memory is not None:
        origin = request.origins.get("resources.memory") or request.origins.get(
            "resources.memory_per_gpu", ""
        )
        request, _ = _without(request, "memory")
        if origin:
            notes.append(f"memory ({origin}) is left out: {profile.name} gives it with the nodes")
    return request, notes


def _without_log_files(request: Request) -> tuple[Request, list[str]]:
    """The request without files for output and errors: where the folder of one is missing, the
    job fails and leaves no word."""
    extra = request.resources.extra
    ours = [word for word in extra if setting_name(word) in LOG_FILES]
    others = tuple(word for word in extra if word not in ours)
    notes = [
        f"{word} is left out: what a job prints and its errors are in one log, which runyard keeps "
        "and `runyard logs` shows"
        for word in ours
    ]
    return replace(request, resources=replace(request.resources, extra=others)), notes


def _without(request: Request, option: str) -> tuple[Request, str | None]:
    """The request without one option, and where it stood: as a setting, or among the extra."""
    resources, stood_in = request.resources, None
    if option in settings_of(Resources) and getattr(resources, option) not in (None, ()):
        empty: Any = () if isinstance(getattr(resources, option), tuple) else None
        resources, stood_in = replace(resources, **{option: empty}), "setting"
        if option == "memory":
            resources = replace(resources, memory_per_gpu=None)
    others = tuple(word for word in resources.extra if setting_name(word) != option)
    if others != resources.extra:
        resources, stood_in = replace(resources, extra=others), "extra"
    return replace(request, resources=resources), stood_in


def _missing(request: Request) -> Iterator[Refusal]:
    profile = request.profile
    known = settings_of(Resources)
    written = {name for name in known if getattr(request.resources, name) not in (None, ())}
    written |= {
        setting_name(word) for word in (*request.resources.extra, *profile.submission.always)
    }
    if request.environment.image is not None:
        written.add("image")
    for option, reason in profile.submission.mandatory.items():
        if option in written:
            continue
        values = profile.submission.values.get(option, ())
        example = next((value for value in values if "*" not in value), "…")
        if option in known:
            flag = known[option].metadata["flags"]
            long = next(word for word in flag if word.startswith("--"))
            mend = f"add resources: {{{option}: {example}}} to runyard.yaml, or {long} {example}"
        else:
            word = f"--{option}={example}"
            mend = f"add {word} to resources: extra, or {EXTRA_FLAG}={word}"
        yield Refusal(f"{option} is missing: {reason}", mend, f"resources.{option}")


def _wrong_values(request: Request) -> Iterator[Refusal]:
    for option, allowed in request.profile.submission.values.items():
        value = getattr(request.resources, option, None)
        if value in (None, ()) or any(fnmatchcase(str(value), pattern) for pattern in allowed):
            continue
        near = closest(value, allowed)
        yield Refusal(
            f"{option} {value} ({request.origin(f'resources.{option}')}) is not allowed",
            f"did you mean {near}?" if near else f"write {listed(allowed)}",
            f"resources.{option}",
        )


def _other_server(request: Request) -> Iterator[Refusal]:
    """What programs that log to another server need."""
    tracking, network = request.tracking, request.profile.network
    if tracking.server == "embedded":
        return
    origin = request.origin("tracking.server")
    if tracking.server == "cloud" and (network.internet == "no" or network.wandb == "offline"):
        yield Refusal(
            f"programs cannot log to W&B's cloud ({origin}): compute nodes do not reach it",
            "leave it out; `runyard sync RUN --to cloud` sends runs there when they have ended",
            "tracking.server",
        )
    if tracking.mode is not None:
        yield Refusal(
            f"tracking.mode ({request.origin('tracking.mode')}) is how nodes reach runyard's own "
            f"server, and programs log to {tracking.server} ({origin})",
            "leave one of the two out",
            "tracking.mode",
        )


def _throttled(request: Request) -> tuple[Request, list[str]]:
    """No more array tasks at once than the site wants."""
    most = request.profile.limits.array_throttle
    agents = request.agents
    if most is None or (agents.at_once is not None and agents.at_once <= most):
        return request, []
    if agents.at_once is None and (agents.count or 1) <= most:
        return request, []
    before = f" instead of {agents.at_once}" if agents.at_once is not None else ""
    note = f"{most} agents at once{before}: {request.profile.name} allows no more of an array"
    return replace(request, agents=replace(agents, at_once=most)), [note]


def _wrong_place(request: Request, environ: Mapping[str, str]) -> Iterator[Refusal]:
    profile = request.profile
    rules = profile.submission
    job = this_job(environ)
    if not rules.from_compute_nodes and job.is_job:
        yield Refusal(
            f"jobs cannot be submitted from inside a job ({job.own_id})",
            "submit from a login node",
            "",
        )
    if rules.allowed_from == "scratch":
        yield from _outside_scratch(profile, request.folder, environ)


def _outside_scratch(
    profile: Profile, folder: Path, environ: Mapping[str, str]
) -> Iterator[Refusal]:
    scratch = scratch_folder(profile, environ)
    inside = folder.resolve().is_relative_to(scratch.resolve())
    if not inside:
        reason = f": {profile.submission.reason}" if profile.submission.reason else ""
        yield Refusal(
            f"jobs are submitted from scratch only, and the project is in {folder}{reason}",
            f"copy the project to {scratch} and submit there",
            "",
        )
