"""Estimates beside a submission: said before it, kept with its sweep, compared afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.actions.events import Notice, Notify
from runyard.client.discover import find_server
from runyard.errors import RunyardError
from runyard.home import locate

if TYPE_CHECKING:
    from runyard.client.api import Api
    from runyard.config.request import Request
    from runyard.gauge.estimates import Basis, SubmissionSize
    from runyard.shapes.sweeps import Sweep


@dataclass(frozen=True)
class Subject:
    """What an estimate is about: a kind of experiment in a project."""

    kind: str
    project: str
    entity: str | None = None


def tell_estimate(subject: Subject, size: SubmissionSize, request: Request, notify: Notify) -> None:
    """Tell what is to be expected; nothing where nothing is known. Starts no server."""
    from runyard.gauge import estimates

    basis = _basis(subject, request.resources.gpu_type)
    if basis is None:
        notify(
            Notice(
                f"how long it takes is not known yet: `runyard gauge` measures {subject.kind}, and "
                "what runs is remembered"
            )
        )
        return
    notify(Notice(estimates.estimate_text(estimates.estimate(basis, size), size)))
    margins = request.gauge
    for note in estimates.advise(
        basis, size, time_margin=margins.time_margin, memory_margin=margins.memory_margin
    ):
        notify(Notice(note))


def keep_estimate(
    api: Api, sweep: Sweep, subject: Subject, size: SubmissionSize, gpu: str | None, notify: Notify
) -> None:
    """With the sweep: what is expected of it. A sweep is not stopped by what cannot be kept."""
    from runyard.gauge import estimates

    try:
        known = api.figures.known(subject.project, subject.kind, entity=subject.entity)
        basis = estimates.basis_of(known, gpu)
        expected = {} if basis is None else estimates.estimate(basis, size).to_json()
        api.figures.expect(sweep["key"], subject.kind, expected)
    except RunyardError as error:
        notify(Notice(f"the estimate is not kept: {error.what}"))


def _basis(subject: Subject, gpu: str | None) -> Basis | None:
    from runyard.gauge.estimates import basis_of

    try:
        api = find_server(locate())
        if api is None:
            return None
        known = api.figures.known(subject.project, subject.kind, entity=subject.entity)
        api.close()
    except RunyardError:
        return None
    return basis_of(known, gpu)


def options_of_kind(folder: Path) -> tuple[str, ...]:
    """The options that tell kinds apart, of runyard.yaml; that file's own mistakes are told by the
    commands that need it."""
    from runyard.config.project_text import find_project_file, read_project_text

    path = find_project_file(folder)
    if path is None:
        return ()
    try:
        options = (read_project_text(path).data.get("gauge") or {}).get("by") or ()
    except RunyardError:
        return ()
    return tuple(map(str, options))


def estimate_here(
    subject: Subject,
    trials: int | None,
    slots: int | None,
    notify: Notify,
    sweep: Sweep | None = None,
) -> None:
    """The same for this machine: tell it where something is known, and keep it with the sweep."""
    from runyard.gauge import estimates

    size = estimates.SubmissionSize(trials=trials, agents=1, slots=slots or 1, cpus=slots or 1)
    basis = _basis(subject, None)
    if basis is not None:
        notify(Notice(estimates.estimate_text(estimates.estimate(basis, size), size)))
    if sweep is not None:
        api = find_server(locate())
        if api is not None:
            keep_estimate(api, sweep, subject, size, None, notify)
            api.close()


def estimate_against_truth(api: Api, sweep: Sweep) -> str:
    """What a trial was expected to take, and took; empty where either is not known."""
    from runyard.train.pace import in_words

    try:
        record = api.figures.expected(sweep["key"])
    except RunyardError:  # Made by another client than ours.
        return ""
    estimate, truth = record["estimate"], record["truth"]
    if truth is None or not estimate:
        return ""
    took, expected = truth["seconds"], estimate["each"]
    off = f", {100 * (took / expected - 1):+.0f} %" if expected else ""
    return (
        f"a trial took {in_words(took)} on the average; expected were {in_words(expected)}{off} "
        f"({estimate['basis']})"
    )
